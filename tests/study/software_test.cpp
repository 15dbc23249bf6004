#include <fmt/format.h>

#include <functional>

#include "src/common/error.hpp"
#include "src/study/range.hpp"
#include "tests/support/simulation.hpp"

// Every number of models/software moves a prediction, and a file that lacks one is named.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

const std::string dgx = "topologies/clusters/two-dgx-a100.json";

Prediction with(const Lab& lab, const std::string& software,
                const std::function<void(SoftwareModel&)>& change, const Transfer& transfer,
                const Options& options = {}) {
  SoftwareModel model = models().software(software);
  change(model);
  const ModelLibrary library = models().with(model);
  return predict(simulator(), Hardware(lab.graph, library), transfer, options);
}

double gbps(const Prediction& p) { return p.bandwidth.gigabytes_per_second(); }

TEST(Software, StagingBuffersBoundWhatIsUnderWay) {
  const Lab lab(dgx);
  const Transfer staged = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 64_MiB);
  const Prediction one = with(
      lab, "nccl", [](SoftwareModel& m) { m.buffers->value = 1; }, staged);
  EXPECT_LT(gbps(one), gbps(lab.run(staged)) * 0.8);
  EXPECT_TRUE(is(one.bottleneck, WindowKind::staging_buffers));
  // The last buffer takes twice as long through the stages.
  EXPECT_GT(with(
                lab, "nccl", [](SoftwareModel& m) { m.buffer_size->value = 1_MiB; }, staged)
                .latency.seconds,
            lab.run(staged).latency.seconds * 1.01);
  Transfer sent = staged;
  sent.operation = Operation::send;
  EXPECT_LT(gbps(with(
                lab, "messages", [](SoftwareModel& m) { m.buffers->value = 1; }, sent)),
            gbps(lab.run(sent)) * 0.9);
  const Transfer within = lab.transfer("h0/gpu0", "h0/gpu4", PathKind::staged, 64_MiB);
  EXPECT_LT(gbps(with(
                lab, "cuda", [](SoftwareModel& m) { m.buffers->value = 1; }, within)),
            gbps(lab.run(within)) * 0.9);
  const Lab server("topologies/servers/dgx-a100.json");
  const Transfer drive = server.transfer("h0/gpu0", "h0/nvme0", PathKind::staged, 64_MiB);
  EXPECT_LT(gbps(with(
                server, "cufile", [](SoftwareModel& m) { m.buffers->value = 1; }, drive)),
            gbps(server.run(drive)) * 0.95);
}

TEST(Software, LinuxBoundsSocketsAndMapsPages) {
  const Lab lab(dgx);
  const Transfer tcp = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::tcp, 64_MiB);
  const Prediction narrow = with(
      lab, "linux", [](SoftwareModel& m) { m.tcp_window->value = 64_KiB; }, tcp);
  EXPECT_LT(gbps(narrow), gbps(lab.run(tcp)) * 0.9);
  EXPECT_TRUE(is(narrow.bottleneck, WindowKind::socket_buffers));
  // A system call and a packet's cost for each segment.
  EXPECT_LT(gbps(with(
                lab, "linux", [](SoftwareModel& m) { m.tcp_segment->value = 8_KiB; }, tcp)),
            gbps(lab.run(tcp)) * 0.9);
  const std::string bench = "topologies/published/pcie-bench-broadwell.json";
  const Lab translates(bench, {"iommu=translate"});
  Transfer dma;
  set_ends(translates.topology, find_end(translates.topology, "h0/numa0"),
           find_end(translates.topology, "h0/nic0"), dma);
  dma.path = PathKind::dma;
  dma.size = 64_B;
  dma.window = 64_MiB;
  EXPECT_GT(with(
                translates, "linux", [](SoftwareModel& m) { m.iommu_page->value = 4_KiB; }, dma)
                .latency.seconds,
            translates.run(dma).latency.seconds * 1.05)
      << "small pages miss the IOTLB";
}

TEST(Software, WhatDevicesDoNotSay) {
  const Lab lab(dgx);
  const Transfer staged = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 64_MiB);
  const auto cache = [](SoftwareModel& m) { m.dma_cache->value = 1_MiB; };
  const Lab ddio("topologies/clusters/two-dgx-h100.json");
  EXPECT_EQ(ddio.run(staged).dram_bytes_per_byte, 0);
  EXPECT_EQ(with(ddio, "usual", cache, staged).dram_bytes_per_byte, 4);
  // Of gdr only the sender's completion is written to host memory: it takes half of the memory's
  // latency longer.
  const Transfer gdr = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B);
  const auto slow = [](SoftwareModel& m) { m.write_latency_percent->value = 100; };
  const Duration memory = models().cpu("epyc-rome").memory_latency.value;
  expect_close("completion, ns", lab.run(gdr).completion.ns() + memory.ns() / 2,
               with(lab, "usual", slow, gdr).completion.ns(), 1e-6);
  const Lab far(std::string("topologies/clusters/two-dgx-h100.json"), {"fabric.switches=16"});
  const Transfer large = far.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB);
  const Prediction held = with(
      far, "usual", [](SoftwareModel& m) { m.nic_buffer_windows->value = 1; }, large);
  EXPECT_LT(gbps(held), gbps(far.run(large)) * 0.99);
  EXPECT_TRUE(is(held.bottleneck, WindowKind::nic_buffer));
}

TEST(Software, RangesKnowIt) {
  const Lab lab(dgx);
  (void)lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::tcp, 1_MiB));
  const auto used = lab.hardware.models_asked();
  for (const char* name : {"nccl", "linux", "usual"})
    EXPECT_TRUE(used.contains({"software", name})) << name;
  EXPECT_FALSE(used.contains({"software", "cufile"}));
}

TEST(Software, AFileThatLacksANumberIsNamed) {
  const Lab lab(dgx);
  try {
    (void)with(
        lab, "nccl", [](SoftwareModel& m) { m.buffers.reset(); },
        lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 1_MiB));
    ADD_FAILURE() << "no error";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "models/software/nccl.json has no parameter \"buffers\"; add it");
  }
}

}  // namespace
}  // namespace gdr::sim
