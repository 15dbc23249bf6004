// Topology files for virtual machines, from the host's tree and the devices that are passed
// through.
#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"
#include "src/hardware/graph.hpp"
#include "src/import/nccl_guest.hpp"
#include "src/nccl/decision.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/verdict_support.hpp"

namespace gdr {
namespace {

const std::string project = GDR_PROJECT_DIR;

const ModelLibrary& library() {
  static const ModelLibrary models(project + "/models");
  return models;
}

Topology dgx() { return load_topology(project + "/topologies/servers/dgx-a100.json"); }

/// Passes through all GPUs and NICs of the host, at new addresses and in another order.
std::string everything(const Host& host) {
  std::string map = "# host guest\n";
  int bus = 200;
  for (const Device& device : host.devices)
    if (device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic)
      map += device.name +
             " 0000:" + std::string{"0123456789abcdef"[bus / 16], "0123456789abcdef"[bus % 16]} +
             ":00.0\n",
          --bus;
  return map;
}

std::string guest_of(const Topology& topology, const std::string& map) {
  return export_guest_xml(topology, 0, parse_guest_map(map, "map"), &library());
}

Topology import_text(const std::string& text) {
  return import_nccl_xml(std::vector<NamedText>{{text, "guest.xml"}}, &library());
}

const Device& at_address(const Host& host, const std::string& address) {
  for (const Device& device : host.devices)
    if (device.address == address) return device;
  throw std::runtime_error("no device at " + address);
}

TEST(NcclGuest, KeepsEveryDistanceOfTheHost) {
  const Topology host = dgx();
  const GuestMap map = parse_guest_map(everything(host.hosts[0]), "map");
  const Topology guest = import_text(export_guest_xml(host, 0, map, &library()));
  const Graph there(guest);
  const Graph here(host);
  std::size_t pairs = 0;
  for (const auto& [first, a] : map.devices)
    for (const auto& [second, b] : map.devices) {
      const auto in_guest = [&](const std::string& address) {
        return find_device(guest, at_address(guest.hosts[0], address).name);
      };
      EXPECT_EQ(pcie_distance(there, in_guest(a.guest), in_guest(b.guest)),
                pcie_distance(here, find_device(host, first), find_device(host, second)))
          << first << " and " << second;
      ++pairs;
    }
  EXPECT_EQ(pairs, 18U * 18U);
}

/// The problem that such files solve: without one all devices of the guest are directly below the
/// CPU, so NCCL does not use GPUDirect RDMA.
TEST(NcclGuest, BringsGpuDirectRdmaBack) {
  const Topology host = dgx();
  const std::string with = guest_of(host, everything(host.hosts[0]));
  Topology flat = import_text(with);
  for (Device& device : flat.hosts[0].devices)
    if (device.kind != DeviceKind::pci_switch) device.under = flat.hosts[0].numa_nodes[0].name;
  std::erase_if(flat.hosts[0].devices,
                [](const Device& device) { return device.kind == DeviceKind::pci_switch; });
  const auto enabled = [](const Topology& topology) {
    std::size_t count = 0;
    for (const auto& pair : nccl::decide(topology, 0, library(), "2.18.6", {}).pairs)
      count += pair.receive ? 1 : 0;
    return count;
  };
  EXPECT_EQ(enabled(flat), 0U);
  EXPECT_GE(enabled(import_text(with)), 8U);
}

TEST(NcclGuest, LeavesOutWhatIsNotPassedThrough) {
  const Topology host = dgx();
  const std::string text = guest_of(host, "gpu0 0001:00:00.0\nnic0 0101:00:00.0\nnuma " +
                                              host.hosts[0].numa_nodes[3].name + " 0\n");
  const Topology guest = import_text(text);
  ASSERT_EQ(guest.hosts[0].numa_nodes.size(), 1U) << "only the node above gpu0 and nic0\n" << text;
  std::size_t others = 0;
  for (const Device& device : guest.hosts[0].devices)
    others += device.kind == DeviceKind::pci_switch ? 0 : 1;
  EXPECT_EQ(others, 2U) << text;
  EXPECT_EQ(text.find("affinity"), std::string::npos) << "the guest has different cores";
  EXPECT_EQ(text.find("<gpu"), std::string::npos) << "NCCL asks the driver";
  EXPECT_EQ(text.find("<nvlink"), std::string::npos);
  EXPECT_NE(text.find(R"(busid="ffff:ff:00.0")"), std::string::npos) << text;
  EXPECT_EQ(pcie_distance(Graph(guest), find_device(guest, "gpu0"), find_device(guest, "nic0")),
            Distance::pxb)
      << "as on the host\n"
      << text;
}

void expect_refused(const std::string& map, const std::string& message) {
  try {
    guest_of(dgx(), map);
    FAIL() << "no error for " << map;
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()), message);
  }
}

TEST(NcclGuest, BadMapsAreRefused) {
  expect_refused("", "map: it names no device; each line is HOST-ADDRESS GUEST-ADDRESS");
  expect_refused("gpu0\n",
                 "map:1: expected \"HOST-ADDRESS GUEST-ADDRESS\" or \"numa NAME NUMBER\"");
  expect_refused("gpu0 1:2\n", "map:1: \"1:2\" is not a PCI address such as 0001:00:00.0");
  expect_refused("gpu0 1:2:0.9\n", "map:1: \"1:2:0.9\" is not a PCI address such as 0001:00:00.0");
  expect_refused("gpu0 0001:00:00.9\n",
                 "map:1: \"0001:00:00.9\" is not a PCI address such as 0001:00:00.0");
  expect_refused("gpu0 0001:00:00.0\n\ngpu0 0002:00:00.0 # again\n",
                 "map:3: gpu0 is also in line 1");
  expect_refused("gpu0 0001:00:00.0\ngpu1 01:00.0\nnic0 0000:01:00.0\n",
                 "map:3: 0000:01:00.0 is also in line 2");
  expect_refused("gpu77 0001:00:00.0\n",
                 "map:1: host h0 has no device gpu77; gdr show lists names and addresses");
  expect_refused("gpu0 0001:00:00.0\nnuma nowhere 1\n", "map:2: host h0 has no NUMA node nowhere");
  expect_refused("gpu0 0001:00:00.0\nnuma numa0 -1\n",
                 "map:2: \"-1\" is not the number of a NUMA node");
}

TEST(NcclGuest, MadeUpAddressesKeepClearOfGivenOnes) {
  const std::string text = guest_of(dgx(), "gpu0 ffff:ff:00.0\nnic0 0101:00:00.0\n");
  std::size_t count = 0;
  for (auto at = text.find("busid=\"ffff:ff:00.0\""); at != std::string::npos;
       at = text.find("busid=\"ffff:ff:00.0\"", at + 1))
    ++count;
  EXPECT_EQ(count, 1U) << text;
}

TEST(NcclGuest, NodesThatWouldBecomeOneAreRefused) {
  const Topology host = dgx();
  std::string map = everything(host.hosts[0]);
  for (const NumaNode& node : host.hosts[0].numa_nodes) map += "numa " + node.name + " 0\n";
  EXPECT_THROW(guest_of(host, map), InputError);
}

}  // namespace
}  // namespace gdr
