#include "src/topology/topology.hpp"

#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using gdr::Acs;
using gdr::PcieLink;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
    return "no error";
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

/// A document that uses every member.
const char* const everything = R"({
  "format": 1, "name": "all", "description": "everything", "sources": ["a", "b"],
  "hosts": [{
    "name": "h0", "virtual_machine": true,
    "software": {"kernel": "5.15", "iommu": "passthrough", "nvidia_peermem": true, "open_kernel_modules": false, "cuda": "12.2",
                 "nccl_version": "2.18.6", "nccl_net_gdr_level": "PHB"},
    "sockets": [{"name": "cpu0", "model": "epyc-rome"}, {"name": "cpu1"}],
    "numa_nodes": [{"name": "numa0", "socket": "cpu0", "nccl": [{"tag": "cpu", "attributes": {"numaid": "0"}}]}],
    "devices": [
      {"name": "hb0", "kind": "host-bridge", "under": "numa0", "address": "0000:00:00.0", "pci_id": "1022:1480"},
      {"name": "sw0", "kind": "switch", "model": "pex88096", "under": "hb0", "link": "gen4x8", "link_capability": "gen4x16", "acs": ["SV", "RR"]},
      {"name": "gpu0", "kind": "gpu", "model": "a100", "under": "sw0", "link": "gen4x16", "acs": [], "max_payload": "256B",
       "max_read_request": "512B", "relaxed_ordering": true, "ats": false, "bar_size": "64GiB", "gdr": true},
      {"name": "nic0", "kind": "nic", "under": "sw0", "ports": 2, "port_rate": "200Gb/s", "link_layer": "ethernet", "rdma_device": "mlx5_0",
       "gid_type": 2, "lossless": false, "gdr": false, "nccl": [{"tag": "net", "attributes": {}}]},
      {"name": "nvme0", "kind": "nvme", "under": "numa0"},
      {"name": "nvswitch0", "kind": "nvswitch", "under": "sw0"},
      {"name": "x", "kind": "other", "under": "sw0"}
    ],
    "nvlinks": [{"from": "gpu0", "to": "nvswitch0", "count": 12, "model": "nvlink3"}, {"from": "gpu0", "count": 1}]
  }],
  "fabric": {"model": "ethernet", "mtu": "1KiB", "switches": 0},
  "staging": {"chunk": "512KiB", "depth": 4},
  "nccl": [{"tag": "system", "attributes": {"version": "1"}}]
})";

TEST(Topology, IsReadAndWrittenWithEveryMember) {
  const gdr::Topology topology = gdr::read_topology(gdr::json::parse(everything, "f"), "f", "");
  const gdr::Device& nic = get(topology, gdr::find_device(topology, "h0/nic0"));
  EXPECT_EQ(nic.port_rate->gigabytes_per_second(), 25);
  EXPECT_EQ(nic.link_layer, gdr::LinkLayer::ethernet);
  EXPECT_EQ(topology.hosts[0].software.iommu, gdr::IommuMode::passthrough);
  EXPECT_EQ(topology.fabric->switches, 0);
  const auto again =
      gdr::read_topology(gdr::json::parse(gdr::json::dump(to_json(topology)), "f"), "f", "");
  EXPECT_EQ(again, topology);
  EXPECT_EQ(gdr::json::dump(to_json(again)), gdr::json::dump(to_json(topology)));
}

TEST(Topology, WhatIsAbsentStaysAbsent) {
  const gdr::Topology topology =
      gdr::load_topology(std::string(GDR_PROJECT_DIR) + "/tests/data/small.json");
  const gdr::Device& gpu = get(topology, gdr::find_device(topology, "gpu0"));
  EXPECT_FALSE(gpu.max_payload || gpu.gdr || gpu.bar_size || gpu.relaxed_ordering);
  EXPECT_FALSE(topology.fabric);
  EXPECT_EQ(gdr::read_topology(to_json(topology), "f", ""), topology);
}

TEST(Topology, AClusterPutsInItsServers) {
  const std::string folder = std::string(GDR_PROJECT_DIR) + "/tests/data";
  const char* const text =
      R"({"format": 1, "name": "c", "hosts": [{"name": "a", "server": "small.json"}, {"name": "b", "server": "small.json"}]})";
  const gdr::Topology topology = gdr::read_topology(gdr::json::parse(text, "c.json"), "c.json",
                                                    folder, {gdr::parse_setting("b.iommu=off")});
  ASSERT_EQ(topology.hosts.size(), 2U);
  EXPECT_EQ(topology.hosts[1].name, "b");
  EXPECT_FALSE(topology.hosts[0].software.iommu);
  EXPECT_EQ(topology.hosts[1].software.iommu, gdr::IommuMode::off);
  EXPECT_EQ(devices_of_kind(topology, gdr::DeviceKind::gpu).size(), 2U);
  EXPECT_EQ(label(topology, gdr::find_device(topology, "b/nic0")), "b/nic0");
}

TEST(Topology, FindDeviceNamesWhatThereIs) {
  const auto one = gdr::read_topology(gdr::json::parse(everything, "f"), "f", "");
  EXPECT_EQ(gdr::find_device(one, "gpu0"), gdr::find_device(one, "h0/gpu0"));
  EXPECT_EQ(error_of([&] { (void)gdr::find_device(one, "h1/gpu0"); }),
            "h1/gpu0: all has no host \"h1\"; it has: h0");
  EXPECT_EQ(
      error_of([&] { (void)gdr::find_device(one, "gpu1"); }),
      "gpu1: host h0 has no device \"gpu1\"; it has: hb0, sw0, gpu0, nic0, nvme0, nvswitch0, x");
  auto two = one;
  two.hosts.push_back(two.hosts[0]);
  two.hosts[1].name = "h1";
  EXPECT_EQ(error_of([&] { (void)gdr::find_device(two, "gpu0"); }),
            "gpu0: all has several hosts; write HOST/DEVICE with one of the hosts h0, h1");
}

TEST(PcieLink, TextBothWays) {
  for (const int generation : {1, 2, 3, 4, 5, 6})
    for (const int width : {1, 2, 4, 8, 12, 16, 32}) {
      const PcieLink link{generation, width};
      EXPECT_EQ(gdr::parse_pcie_link(to_string(link)), link);
    }
  for (const char* text : {"", "gen", "gen4", "gen4x", "gen4x3", "gen0x1", "gen7x16", "gen4 x16",
                           "Gen4x16", "gen4x16 ", "gen4x016x", "gen-4x16", "gen99999999999x1"})
    EXPECT_EQ(error_of([&] { (void)gdr::parse_pcie_link(text); }),
              "\"" + std::string(text) +
                  "\" is not a PCIe link; write gen1 to gen6, x and one of 1, 2, 4, 8, 12, 16, 32 "
                  "lanes, as in \"gen4x16\"");
  EXPECT_EQ(gdr::common_link({5, 8}, {4, 16}), (PcieLink{4, 8}));
  EXPECT_EQ(gdr::gigatransfers_per_lane(1), 2.5);
  EXPECT_EQ(gdr::gigatransfers_per_lane(6), 64);
}

TEST(Acs, BitsAreThoseOfTheRegister) {
  const auto parsed = gdr::json::parse(R"(["SV", "TB", "RR", "CR", "UF", "EC", "DT"])", "f");
  const Acs all = gdr::read_acs(gdr::json::Node(parsed, "f"));
  EXPECT_EQ(all.bits, 0x7f);
  EXPECT_EQ(to_string(all), "SV+TB+RR+CR+UF+EC+DT");
  EXPECT_EQ(to_json(all), parsed);
  EXPECT_EQ(to_string(Acs{}), "none");
  EXPECT_EQ(to_json(Acs{}), gdr::json::Value(gdr::json::Array{}));
  EXPECT_FALSE(Acs{Acs::source_validation | Acs::upstream_forwarding}.redirects());
  for (const auto bit : {Acs::request_redirect, Acs::completion_redirect, Acs::egress_control})
    EXPECT_TRUE(Acs{bit}.redirects());
}

}  // namespace
