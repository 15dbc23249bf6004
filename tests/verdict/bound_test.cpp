#include <fmt/format.h>

#include "src/report/names.hpp"
#include "src/verdict/verdict.hpp"
#include "tests/support/simulation.hpp"

// The verdict's upper bounds, which need no simulation, compared with the simulator's steady rates.

namespace gdr::sim {
namespace {

using report::name;

using namespace gdr::literals;

constexpr double tolerance = 0.02;

std::string pair_name(const Lab& lab, DeviceId a, DeviceId b) {
  return fmt::format("{} {} {}", lab.topology.name, label(lab.topology, a), label(lab.topology, b));
}

/// Both operations of every GPU pair that NVLink does not join.
void compare_gpu_pairs(const std::string& file, const std::vector<std::string>& settings = {}) {
  const Lab lab(file, settings);
  int pairs = 0;
  for (const DeviceId a : devices_of_kind(lab.topology, DeviceKind::gpu))
    for (const DeviceId b : devices_of_kind(lab.topology, DeviceKind::gpu)) {
      if (a == b || a.host != b.host || nvlink_count(lab.graph, a, b) > 0) continue;
      ++pairs;
      const PairBandwidth bound = bandwidth_bound(lab.hardware, a, b);
      ASSERT_TRUE(bound.read && bound.write);
      // In a write the initiator's copy engine sends; in a read it fetches, so the data comes from
      // the target.
      const auto simulated = [&](DeviceId from, DeviceId to, Operation operation) {
        return lab.run(lab.transfer(label(lab.topology, from), label(lab.topology, to),
                                    PathKind::p2p, 64_MiB, operation));
      };
      const Prediction write = simulated(a, b, Operation::write);
      const Prediction read = simulated(b, a, Operation::read);
      expect_close(
          pair_name(lab, a, b) + " write, GB/s (" + name(lab.hardware, write.bottleneck) + ")",
          bound.write->gigabytes_per_second(), write.bandwidth.gigabytes_per_second(), tolerance);
      expect_close(
          pair_name(lab, a, b) + " read, GB/s (" + name(lab.hardware, read.bottleneck) + ")",
          bound.read->gigabytes_per_second(), read.bandwidth.gigabytes_per_second(), tolerance);
    }
  EXPECT_GT(pairs, 0) << file;
}

class BoundOfGpuPairs : public testing::TestWithParam<const char*> {};

TEST_P(BoundOfGpuPairs, IsWhatTheSimulatorGets) {
  compare_gpu_pairs(fmt::format("topologies/servers/{}.json", GetParam()));
}

TEST_P(BoundOfGpuPairs, WithAcsRedirection) {
  compare_gpu_pairs(fmt::format("topologies/servers/{}.json", GetParam()), {"acs=on"});
}

INSTANTIATE_TEST_SUITE_P(Servers, BoundOfGpuPairs,
                         testing::Values("l40s-4gpu-2nic", "epyc-pex890xx",
                                         "threadripper-two-switchtec", "puget-wrx90",
                                         "dual-socket-4gpu-1nic", "dgx-1v", "workstation-rtx5090",
                                         "westmere-two-iohs"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

/// Makes the network ports so fast that PCIe limits.
std::vector<std::string> fast_network(const std::string& file) {
  const Lab lab(file);
  std::vector<std::string> settings;
  for (const DeviceId nic : devices_of_kind(lab.topology, DeviceKind::nic))
    settings.push_back(label(lab.topology, nic) + ".port_rate=4000Gb/s");
  return settings;
}

/// Between hosts the sender's NIC reads its GPU and the receiver's writes its own: the smaller of
/// the two bounds counts.
void compare_nic_pairs(const std::string& file, std::vector<std::string> more = {}) {
  std::vector<std::string> settings = fast_network(file);
  settings.insert(settings.end(), more.begin(), more.end());
  const Lab lab(file, settings);
  const DeviceId near_gpu = find_device(lab.topology, "h0/gpu0");
  const DeviceId near_nic = find_device(lab.topology, "h0/nic0");
  const DeviceId far_gpu = find_device(lab.topology, "h1/gpu0");
  const auto compare = [&](DeviceId from, DeviceId from_nic, DeviceId to_nic, DeviceId to) {
    Transfer transfer =
        lab.transfer(label(lab.topology, from), label(lab.topology, to), PathKind::gdr, 64_MiB);
    transfer.via = {from_nic, to_nic};
    const Prediction simulated = lab.run(transfer, {128, 64, false});
    const Bandwidth read = *bandwidth_bound(lab.hardware, from_nic, from).read;
    const Bandwidth write = *bandwidth_bound(lab.hardware, to_nic, to).write;
    expect_close(
        fmt::format("{} over {}, {} {}, GB/s ({})", pair_name(lab, from, to),
                    label(lab.topology, from_nic), label(lab.topology, to_nic),
                    read < write ? "reading" : "writing", name(lab.hardware, simulated.bottleneck)),
        std::min(read, write).gigabytes_per_second(), simulated.bandwidth.gigabytes_per_second(),
        tolerance);
  };
  for (const DeviceId nic : devices_of_kind(lab.topology, DeviceKind::nic)) {
    if (nic.host == 0) compare(near_gpu, nic, {1, near_nic.device}, far_gpu);
    else compare(near_gpu, near_nic, nic, far_gpu);
  }
}

TEST(BoundOfNicPairs, IsWhatTheSimulatorGets) {
  for (const char* name : {"two-dgx-a100", "two-dgx-h100", "two-dual-socket-4gpu-1nic",
                           "two-sandybridge-two-sockets", "two-gh200"})
    compare_nic_pairs(fmt::format("topologies/clusters/{}.json", name));
}

TEST(BoundOfNicPairs, WithAcsRedirection) {
  for (const char* name : {"two-dgx-a100", "two-dgx-h100"})
    compare_nic_pairs(fmt::format("topologies/clusters/{}.json", name), {"acs=on"});
}

TEST(BoundOfNicPairs, WithSmallReadRequests) {
  compare_nic_pairs("topologies/clusters/two-dgx-a100.json", {"max_read_request=128B"});
}

}  // namespace
}  // namespace gdr::sim
