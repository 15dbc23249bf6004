#include <fmt/format.h>

#include <filesystem>

#include "sim/flow/bound.hpp"
#include "src/hardware/distance.hpp"
#include "src/report/names.hpp"
#include "tests/support/simulation.hpp"

// The bound of a stage alone needs no simulation, and no prediction may exceed it.

namespace gdr::sim {
namespace {

using report::name;

using namespace gdr::literals;

struct Seen {
  int pairs = 0;
  int reached = 0;  ///< predictions that come within 2 % of their bound
};

void expect_below(const Lab& lab, Seen& seen, const Transfer& transfer, const StageBound& bound) {
  const Prediction prediction = lab.run(transfer, {128, 64, false});
  ++seen.pairs;
  seen.reached += prediction.bandwidth >= bound.bandwidth * 0.98 ? 1 : 0;
  EXPECT_LE(prediction.bandwidth, bound.bandwidth * 1.001) << fmt::format(
      "{} {} {} to {} {}: bound {:.3f} GB/s by {}, predicted {:.3f} by {}", lab.topology.name,
      to_string(transfer.path), label(lab.topology, transfer.from),
      label(lab.topology, transfer.to), to_string(transfer.operation),
      bound.bandwidth.gigabytes_per_second(), name(lab.hardware, bound.by),
      prediction.bandwidth.gigabytes_per_second(), name(lab.hardware, prediction.bottleneck));
}

/// Both directions between an initiator and a GPU of its host.
void compare(const Lab& lab, Seen& seen, DeviceId initiator, DeviceId gpu, PathKind path) {
  for (const bool reads : {false, true}) {
    Transfer transfer;
    transfer.from = reads ? gpu : initiator;
    transfer.to = reads ? initiator : gpu;
    transfer.path = path;
    transfer.size = 64_MiB;
    transfer.operation = reads ? Operation::read : Operation::write;
    expect_below(lab, seen, transfer, bound_of_pair(lab.hardware, initiator, gpu, reads));
  }
}

std::vector<std::string> files_of(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(project_file(folder)))
    files.push_back(folder + "/" + entry.path().filename().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(StageBound, NoPairOfAServerIsPredictedAboveIt) {
  Seen seen;
  for (const std::string& file : files_of("topologies/servers")) {
    const Lab lab(file);
    const auto gpus = devices_of_kind(lab.topology, DeviceKind::gpu);
    for (const DeviceId gpu : gpus) {
      for (const DeviceId other : gpus)
        if (other.device > gpu.device)
          compare(lab, seen, other, gpu,
                  nvlink_count(lab.graph, other, gpu) > 0 ? PathKind::nvlink : PathKind::p2p);
      for (const DeviceId drive : devices_of_kind(lab.topology, DeviceKind::nvme))
        compare(lab, seen, drive, gpu, PathKind::gds);
    }
  }
  fmt::print("{} predictions, {} within 2 % of their bound\n", seen.pairs, seen.reached);
  EXPECT_GT(seen.pairs, 500);
  EXPECT_GT(seen.reached * 10, seen.pairs * 9) << "a bound that nothing comes near says nothing";
}

TEST(StageBound, NoPairOfHostsIsPredictedAboveIt) {
  Seen seen;
  for (const std::string& file : files_of("topologies/clusters")) {
    const Lab lab(file);
    const auto of_host = [&](DeviceKind kind, std::size_t host) {
      std::vector<DeviceId> devices = devices_of_kind(lab.topology, kind);
      std::erase_if(devices, [&](DeviceId id) { return id.host != host; });
      return devices;
    };
    const DeviceId to = of_host(DeviceKind::gpu, 1).front();
    for (const DeviceId from : of_host(DeviceKind::gpu, 0)) {
      const Transfer transfer = [&] {
        Transfer t;
        t.from = from;
        t.to = to;
        t.size = 64_MiB;
        return t;
      }();
      const TransferPlan plan = plan_transfer(lab.graph, models(), transfer);
      const StageBound read = bound_of_pair(lab.hardware, *plan.from_nic, from, true);
      const StageBound write = bound_of_pair(lab.hardware, *plan.to_nic, to, false);
      expect_below(lab, seen, transfer, read.bandwidth < write.bandwidth ? read : write);
    }
  }
  EXPECT_GT(seen.pairs, 20);
}

// A Gen3 x8 link of 8 lanes: 128/130 of 8 GT/s less the DLLPs' share, with the headers of 256 B
// writes. The figure depends only on models/pcie and the link.
TEST(StageBound, NamesWhatLimits) {
  const Lab lab(std::string("topologies/clusters/two-dgx-a100.json"), {"h0/nic0.link=gen3x8"});
  const DeviceId nic = find_device(lab.topology, "h0/nic0");
  const StageBound write =
      bound_of_pair(lab.hardware, nic, find_device(lab.topology, "h0/gpu0"), false);
  const ResourceId link{ResourceKind::link, lab.graph.device(nic), Direction::up};
  EXPECT_TRUE(write.by == Bottleneck(link)) << name(lab.hardware, write.by);
  EXPECT_EQ(name(lab.hardware, write.by), "h0/nic0 link up");
  EXPECT_EQ(name(lab.hardware,
                 bound_of_pair(lab.hardware, nic, find_device(lab.topology, "h0/gpu0"), true).by),
            "h0/nic0 link down")
      << "what is read comes down";
}

}  // namespace
}  // namespace gdr::sim
