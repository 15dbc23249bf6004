#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/study/range.hpp"
#include "tests/support/simulation.hpp"

// Paths with one end in host memory or a drive, GPUs that post, and mechanisms that published
// figures show, compared with hand arithmetic.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

Transfer between(const Lab& lab, const std::string& from, const std::string& to, PathKind path,
                 Bytes size) {
  Transfer transfer;
  set_ends(lab.topology, find_end(lab.topology, from), find_end(lab.topology, to), transfer);
  transfer.path = path;
  transfer.size = size;
  return transfer;
}

double gbps(const Lab& lab, const Transfer& transfer, const Options& options = {}) {
  return lab.run(transfer, options).bandwidth.gigabytes_per_second();
}

const std::string bench_file = "topologies/published/pcie-bench-broadwell.json";

TEST(DevicePaths, SmallReadsAreBoundByRequestsInFlight) {
  const Lab lab(bench_file);
  const NicModel& nic = models().nic("nfp-6000");
  const CpuModel& cpu = models().cpu("broadwell-ep");
  // Request and data each pass adapter and root port, and the memory takes its time.
  const Duration loop =
      (nic.pcie_latency.value + cpu.root_port_latency.value) * 2 + cpu.memory_latency.value;
  const double expected = static_cast<double>(nic.reads_in_flight->value) * 64 / loop.seconds / 1e9;
  expect_close("reads of 64 B, GB/s", expected,
               gbps(lab, between(lab, "h0/numa0", "h0/nic0", PathKind::dma, 64_B)), 0.01);
}

TEST(DevicePaths, PostedWritesAreBoundByTheLink) {
  const Lab lab(bench_file);
  // Gen3 x8: 7.877 GB/s less the DLLPs' share; 256 B and 24 B of header and framing.
  const double tlp = tlp_bandwidth(models().pcie(3), 8).gigabytes_per_second();
  expect_close("writes of 2 KiB, GB/s", tlp * 256 / 280,
               gbps(lab, between(lab, "h0/nic0", "h0/numa0", PathKind::dma, 2_KiB)), 0.005);
}

TEST(DevicePaths, PageWalksBoundSmallReads) {
  const Lab lab(bench_file, {"iommu=translate", "iommu_page_size=4KiB"});
  const CpuModel& cpu = models().cpu("broadwell-ep");
  Transfer read = between(lab, "h0/numa0", "h0/nic0", PathKind::dma, 64_B);
  const double warm = gbps(lab, read);
  read.window = 64_MiB;
  const double misses =
      1 - static_cast<double>(cpu.iotlb_entries->value) * 4096 / (64.0 * 1024 * 1024);
  const double walks = static_cast<double>(cpu.iotlb_walks->value) * 64 /
                       (cpu.iotlb_miss_latency->value.seconds * misses) / 1e9;
  expect_close("64 B over 64 MiB, GB/s", walks, gbps(lab, read), 0.01);
  read.window = 256_KiB;  // 64 pages: all in reach
  Transfer cold = read;
  const Lab off(bench_file);
  EXPECT_DOUBLE_EQ(gbps(lab, read), gbps(off, cold)) << "within reach translation costs nothing";
  EXPECT_DOUBLE_EQ(gbps(lab, read), warm) << "a cache holds it";
  cold.window = 64_MiB;
  EXPECT_LT(gbps(off, cold), warm) << "no cache holds it";
}

TEST(DevicePaths, LargePagesReachFurther) {
  Transfer read;
  double rates[2];
  int i = 0;
  for (const char* page : {"iommu_page_size=4KiB", "iommu_page_size=2MiB"}) {
    const Lab lab(bench_file, {"iommu=translate", page});
    read = between(lab, "h0/numa0", "h0/nic0", PathKind::dma, 64_B);
    read.window = 64_MiB;
    rates[i++] = gbps(lab, read);
  }
  EXPECT_GT(rates[1], rates[0] * 2);
}

TEST(DevicePaths, ADriveIsBoundByItsMediumAndItsCommands) {
  const Lab lab("topologies/servers/dgx-2.json");
  const NvmeModel& drive = models().nvme("gen3");
  expect_close("1 MiB reads into a GPU, GB/s", drive.read_bandwidth.value.gigabytes_per_second(),
               gbps(lab, between(lab, "h0/nvme0", "h0/gpu0", PathKind::gds, 1_MiB)), 0.01);
  expect_close("4 KiB reads, commands a second", static_cast<double>(drive.read_iops.value),
               gbps(lab, between(lab, "h0/nvme0", "h0/gpu0", PathKind::gds, 4_KiB)) * 1e9 / 4096,
               0.02);
  const Prediction direct = lab.run(between(lab, "h0/nvme0", "h0/gpu0", PathKind::gds, 64_KiB));
  const Prediction bounced = lab.run(between(lab, "h0/nvme0", "h0/gpu0", PathKind::staged, 64_KiB));
  EXPECT_EQ(direct.host_memory_bytes_per_byte, 0);
  EXPECT_EQ(bounced.host_memory_bytes_per_byte, 2);
  EXPECT_GT(bounced.latency, direct.latency);
}

/// A write through bounce buffers starts when the first is full: a message larger than all of them
/// ends as well, and a small one does not wait for itself.
TEST(DevicePaths, ABouncedWriteIsACommandForEachBuffer) {
  const Lab lab("topologies/servers/dgx-2.json");
  const double medium = models().nvme("gen3").write_bandwidth.value.gigabytes_per_second();
  for (const Bytes size : {64_MiB, 1024_MiB}) {
    const Prediction bounced =
        lab.run(between(lab, "h0/gpu0", "h0/nvme0", PathKind::staged, size), {1, 1, false});
    expect_close("written, GB/s", medium, bounced.bandwidth.gigabytes_per_second(), 0.01);
    expect_close("alone, us", size.as_double() / (medium * 1e3), bounced.latency.us(), 0.02);
  }
}

/// One message at a time: the bandwidth is its size over the time until the sender knows of its
/// end.
TEST(DevicePaths, DepthOneIsAMessageAtATime) {
  const Lab host("topologies/servers/dgx-2.json");
  const Lab two("topologies/clusters/two-dgx-a100.json");
  struct Case {
    const Lab& lab;
    const char* from;
    const char* to;
    PathKind path;
  };
  for (const Case& one : {Case{host, "h0/gpu0", "h0/nvme0", PathKind::gds},
                          Case{host, "h0/nvme0", "h0/gpu0", PathKind::staged},
                          Case{host, "h0/gpu0", "h0/nvme0", PathKind::staged},
                          Case{host, "h0/gpu0", "h0/gpu1", PathKind::staged},
                          Case{host, "h0/gpu0", "h0/gpu1", PathKind::p2p},
                          Case{two, "h0/gpu0", "h1/gpu0", PathKind::gdr},
                          Case{two, "h0/gpu0", "h1/gpu0", PathKind::staged}})
    for (const Bytes size : {4_KiB, 1_MiB, 16_MiB}) {
      const Prediction alone =
          one.lab.run(one.lab.transfer(one.from, one.to, one.path, size), {1, 1, false});
      expect_close(std::string(to_string(one.path)) + " " + one.from + " to " + one.to + ", GB/s",
                   size.as_double() / alone.completion.seconds * 1e-9,
                   alone.bandwidth.gigabytes_per_second(), 0.02);
    }
}

TEST(DevicePaths, TwoDrivesShareNothingBelowTheLink) {
  const Lab lab("topologies/published/broadwell-p40-p4600.json");
  std::vector<Transfer> transfers;
  for (const char* drive : {"h0/nvme0", "h0/nvme1"})
    transfers.push_back(between(lab, drive, "h0/gpu0", PathKind::gds, 1_MiB));
  const double drive = models().nvme("p4600").read_bandwidth.value.gigabytes_per_second();
  expect_close("two drives, GB/s", 2 * drive,
               predict_streams(simulator(), lab.hardware, transfers, {}).sum.gigabytes_per_second(),
               0.01);
  transfers.push_back(between(lab, "h0/nvme2", "h0/gpu0", PathKind::gds, 1_MiB));
  // With the third, the root complex limits.
  expect_close("three drives, GB/s",
               models().cpu("broadwell-ep").p2p_write_bandwidth->value.gigabytes_per_second(),
               predict_streams(simulator(), lab.hardware, transfers, {}).sum.gigabytes_per_second(),
               0.01);
}

TEST(DevicePaths, ModeratedCompletionsMakeBatches) {
  const Lab lab("topologies/published/two-hgx-h100-roce.json");
  Transfer transfer = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::rdma, 128_KiB);
  const double each = gbps(lab, transfer, {8, 1, false, 1});
  const double batches = gbps(lab, transfer, {8, 1, false, 8});
  const double single = gbps(lab, transfer, {1, 1, false, 1});
  // A batch of 8 takes the time of 8 messages on the wire and of a message's loop without its own
  // time there.
  const double on_wire_us = 131072 / (each * 1e3);
  const double loop_us = 131072 / (single * 1e3) - on_wire_us;
  expect_close("8 messages a completion, GB/s", 8 * 131072 / ((8 * on_wire_us + loop_us) * 1e3),
               batches, 0.05);
  EXPECT_LT(single, batches);
  EXPECT_LT(batches, each);
}

TEST(DevicePaths, WritesAcrossSocketsFallWithTheWay) {
  const Lab direct("topologies/published/turin-direct.json");
  const Lab switched("topologies/servers/epyc-pex890xx.json");
  const auto rate = [](const Lab& lab, const char* to) {
    return gbps(lab, between(lab, "h0/gpu0", to, PathKind::p2p, 64_MiB));
  };
  const Bytes window = models().cpu("epyc-turin").p2p_remote_write_window->value;
  const auto plan = plan_transfer(switched.graph, models(),
                                  between(switched, "h0/gpu0", "h0/gpu4", PathKind::p2p, 64_MiB));
  const Duration loop = switched.hardware.one_way(plan.stages.front().data) * 2 +
                        models().gpu("rtx-pro-6000").bar_write_latency.value;
  expect_close("with switches, GB/s", window.as_double() / loop.seconds / 1e9,
               rate(switched, "h0/gpu4"), 0.01);
  EXPECT_GT(rate(direct, "h0/gpu3"), rate(switched, "h0/gpu4") * 1.2);
}

TEST(DevicePaths, FanOutSlowsWritesOnly) {
  const Lab lab("topologies/published/threadripper-four-switchtec.json");
  const auto sum = [&](const std::vector<std::pair<const char*, const char*>>& pairs,
                       Operation operation) {
    std::vector<Transfer> transfers;
    for (const auto& [from, to] : pairs) {
      transfers.push_back(between(lab, from, to, PathKind::p2p, 64_MiB));
      transfers.back().operation = operation;
    }
    return predict_streams(simulator(), lab.hardware, transfers, {}).sum.gigabytes_per_second();
  };
  const double cap = models()
                         .cpu("threadripper-pro-7000")
                         .p2p_fan_out_write_bandwidth->value.gigabytes_per_second();
  expect_close("two sources, two ports, GB/s", cap,
               sum({{"h0/gpu0", "h0/gpu4"}, {"h0/gpu1", "h0/gpu8"}}, Operation::write), 0.01);
  EXPECT_GT(sum({{"h0/gpu0", "h0/gpu4"}, {"h0/gpu1", "h0/gpu5"}}, Operation::write), 3 * cap)
      << "one port";
  EXPECT_GT(sum({{"h0/gpu0", "h0/gpu4"}, {"h0/gpu0", "h0/gpu8"}}, Operation::write), 3 * cap)
      << "one source";
  EXPECT_GT(sum({{"h0/gpu4", "h0/gpu0"}, {"h0/gpu8", "h0/gpu1"}}, Operation::read), 3 * cap)
      << "reads";
}

TEST(DevicePaths, AProxyCostsMoreThanTheCpuAlone) {
  const Lab lab("topologies/published/loom-h200-nvl.json");
  Transfer transfer = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B);
  const Prediction cpu = lab.run(transfer);
  transfer.initiator = Initiator::proxy;
  const Prediction proxy = lab.run(transfer);
  transfer.initiator = Initiator::gpu;
  const Prediction gpu = lab.run(transfer);
  EXPECT_GT(proxy.completion, cpu.completion);
  EXPECT_GT(proxy.latency, cpu.latency);
  EXPECT_LT(gpu.cpu_cores, 1e-9) << "no CPU has a part in it";
  transfer.path = PathKind::staged;
  EXPECT_THROW((void)lab.run(transfer), InputError);
}

TEST(DevicePaths, InlineSavesTheFetchOfThePayload) {
  const Lab lab("topologies/published/loom-h200-nvl.json");
  Transfer transfer = lab.transfer("h0/nic0", "h1/nic0", PathKind::rdma, 8_B);
  const Duration plain = lab.run(transfer).latency;
  const auto plan = plan_transfer(lab.graph, models(), transfer);
  const Duration fetch =
      lab.hardware.round_trip(plan.stages.front().requests, plan.stages.front().data);
  transfer.push_request = false;
  const Duration fetched = lab.run(transfer).latency;
  expect_close("the request is read like the payload, ns", fetch.ns(), (fetched - plain).ns(),
               0.01);
  transfer.push_request.reset();
  transfer.inlined = true;
  expect_close("saved by inline, ns", fetch.ns(), (plain - lab.run(transfer).latency).ns(), 0.02);
  transfer.size = 4_KiB;
  EXPECT_THROW((void)lab.run(transfer), InputError);
}

TEST(DevicePaths, PageableCopiesAreACoresWork) {
  const Lab lab("topologies/servers/dgx-a100.json");
  for (const bool to_gpu : {true, false}) {
    Transfer transfer = between(lab, to_gpu ? "h0/numa0" : "h0/gpu0",
                                to_gpu ? "h0/gpu0" : "h0/numa0", PathKind::copy, 64_MiB);
    const Prediction pinned = lab.run(transfer);
    transfer.pageable = true;
    const Prediction pageable = lab.run(transfer);
    EXPECT_EQ(pageable.host_memory_bytes_per_byte, pinned.host_memory_bytes_per_byte + 2);
    EXPECT_LE(pageable.bandwidth, models().cpu("epyc-rome").copy_bandwidth_per_core.value * 1.001);
    EXPECT_LT(pageable.bandwidth, pinned.bandwidth * 0.7);
  }
}

TEST(DevicePaths, GpusOfTwoBoardsHaveNoNvlinkWithoutOne) {
  // The file of the DGX-2 cannot state how its two boards' NVSwitches are joined.
  const Lab lab("topologies/servers/dgx-2.json");
  for (const PathKind path : {PathKind::nvlink, PathKind::load_store}) {
    EXPECT_GT(lab.run(between(lab, "h0/gpu0", "h0/gpu7", path, 8_B)).latency, Duration{});
    if (path == PathKind::nvlink)
      EXPECT_THROW((void)lab.run(between(lab, "h0/gpu0", "h0/gpu9", path, 8_B)), InputError);
    else EXPECT_GT(lab.run(between(lab, "h0/gpu0", "h0/gpu9", path, 8_B)).latency, Duration{});
  }
}

TEST(DevicePaths, ChunksAreEvenAndBuffersAreCounted) {
  const Lab lab("topologies/servers/puget-wrx90.json");
  const auto rate = [&](std::uint64_t kib) {
    return gbps(lab, between(lab, "h0/gpu0", "h0/gpu1", PathKind::staged, Bytes{kib << 10U}));
  };
  const double whole = rate(512);
  EXPECT_GT(rate(513), whole * 0.7) << "a byte more must not cost a buffer";
  expect_close("1 MiB is two chunks, GB/s", whole, rate(1024), 0.01);
  expect_close("64 MiB, GB/s", whole, rate(64 << 10), 0.01);
}

TEST(DevicePaths, EndsInHostMemory) {
  const Lab lab(bench_file);
  EXPECT_THROW(between(lab, "h0/numa0", "h0/numa1", PathKind::dma, 64_B), InputError);
  EXPECT_THROW((void)lab.run(between(lab, "h0/numa0", "h0/nic0", PathKind::copy, 64_B)),
               InputError);
  const Transfer remote = between(lab, "h0/numa1", "h0/nic0", PathKind::dma, 64_B);
  EXPECT_EQ(from_label(lab.graph, remote), "h0/numa1");
  EXPECT_EQ(to_label(lab.graph, remote), "h0/nic0");
  const CpuModel& cpu = models().cpu("broadwell-ep");
  // Once in each direction; the 64 B also take longer at the window's lower rate.
  const double share = 1.0 / static_cast<double>(models().nic("nfp-6000").reads_in_flight->value);
  expect_close("farther by the socket link, ns",
               cpu.socket_link_latency->value.ns() * 2 * (1 + share),
               (lab.run(remote).latency -
                lab.run(between(lab, "h0/numa0", "h0/nic0", PathKind::dma, 64_B)).latency)
                   .ns(),
               0.01);
}

TEST(DevicePaths, ARangeGrowsWithItsParameters) {
  const Lab lab(bench_file);
  const Transfer read = between(lab, "h0/numa0", "h0/nic0", PathKind::dma, 64_B);
  (void)predict_message(simulator(), lab.hardware, read);
  const auto used = lab.hardware.models_asked();
  EXPECT_TRUE(used.contains({"nic", "nfp-6000"}));
  EXPECT_TRUE(used.contains({"cpu", "broadwell-ep"}));
  EXPECT_FALSE(used.contains({"fabric", "infiniband"}));
  const auto ranges = study::range_of(lab.hardware, [&](const Hardware& hardware) {
    return std::vector<double>{predict_message(simulator(), hardware, read).latency.us(), 1.0};
  });
  EXPECT_GT(ranges[0].high / ranges[0].low, ranges[1].high / ranges[1].low);
  expect_close("nothing but the model's own error",
               (1 + study::model_spread) * (1 + study::model_spread),
               ranges[1].high / ranges[1].low, 1e-9);
  ASSERT_FALSE(ranges[0].contributions.empty());
  EXPECT_TRUE(ranges[1].contributions.empty());
}

TEST(DevicePaths, TheTimeLineCoversTheMessage) {
  const Lab lab("topologies/clusters/two-dgx-a100.json");
  const Transfer transfer = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_MiB);
  const Timeline line = timeline(simulator(), lab.hardware, transfer);
  std::vector<std::uint64_t> bytes(line.steps.size());
  for (const Span& span : line.spans) {
    EXPECT_LE(span.begin, span.end);
    bytes[span.stage] += span.bytes.count;
  }
  for (const std::uint64_t sum : bytes) EXPECT_EQ(sum, 1U << 20U);
  EXPECT_LE(line.spans.back().end, lab.run(transfer).latency);
  EXPECT_THROW((void)timeline(simulator(), lab.hardware,
                              lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 16384_MiB)),
               InputError);
}

}  // namespace
}  // namespace gdr::sim
