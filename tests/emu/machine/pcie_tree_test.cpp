#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "emu/machine/gpu_memory.hpp"
#include "emu/machine/pcie_tree.hpp"
#include "src/common/error.hpp"
#include "src/hardware/graph.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using namespace gdr;
using Lines = std::vector<std::string>;

const ModelLibrary& models() {
  static const ModelLibrary library(GDR_PROJECT_DIR "/models");
  return library;
}

Topology server(const std::string& name) {
  return load_topology(GDR_PROJECT_DIR "/topologies/servers/" + name + ".json");
}

emu::PcieTree tree_of(const Topology& topology) {
  const Graph graph(topology);
  return emu::pcie_tree(topology.hosts.front(), 0, emu::gpu_memory({graph, models()}, 0),
                        [](const Device& gpu) { return "/run/" + gpu.name; });
}

/// "-device X" as "device X": one line per option.
Lines lines_of(const emu::PcieTree& tree) {
  Lines lines;
  for (std::size_t i = 0; i + 1 < tree.arguments.size(); i += 2)
    lines.push_back(tree.arguments[i].substr(1) + " " + tree.arguments[i + 1]);
  return lines;
}

/// Every device with id= and what it is plugged into.
std::map<std::string, std::string> buses_of(const emu::PcieTree& tree) {
  std::map<std::string, std::string> buses;
  const auto value = [](const std::string& line, const std::string& name) {
    const auto at = line.find("," + name + "=");
    if (at == std::string::npos) return std::string();
    const auto from = at + name.size() + 2;
    return line.substr(from, line.find(',', from) - from);
  };
  for (const std::string& line : lines_of(tree)) {
    if (!line.starts_with("device ")) continue;
    EXPECT_TRUE(buses.emplace(value(line, "id"), value(line, "bus")).second) << line;
  }
  return buses;
}

/// Bridges from a device up, the device's own port first, as the guest will see them.
Lines way_up(const std::map<std::string, std::string>& buses, std::string at) {
  Lines way;
  for (at = buses.at(at); at != "pcie.0"; at = buses.at(at)) way.push_back(at);
  return way;
}

emu::PcieTree tree_of(const std::string& devices,
                      const std::string& numa_nodes = R"({"name": "numa0", "socket": "cpu0"})") {
  return tree_of(read_topology(
      json::parse(
          R"({"format": 1, "name": "t", "hosts": [{"name": "h0", "sockets": [{"name": "cpu0"}],
                                               "numa_nodes": [)" +
              numa_nodes + R"(], "devices": [)" + devices + "]}]}",
          "t.json"),
      "t.json", "."));
}

std::string refusal(const std::string& devices) {
  try {
    tree_of(devices);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(EmuPcieTree, SandybridgeOneSocketIsTwoRootPortsOfOneHostBridge) {
  const Lines expected{
      "device pxb-pcie,id=hb0,bus=pcie.0,bus_nr=1,numa_node=0",
      "device "
      "pcie-root-port,id=gpu0.port,bus=hb0,addr=0x0,chassis=1,slot=2,hotplug=off,x-speed=8,x-width="
      "16",
      "object memory-backend-file,id=gpu0.memory,size=268435456,share=on,mem-path=/run/gpu0",
      "device ivshmem-plain,memdev=gpu0.memory,id=gpu0,bus=gpu0.port,addr=0x0.0x0",
      "device "
      "pcie-root-port,id=nic0.port,bus=hb0,addr=0x1,chassis=1,slot=3,hotplug=off,x-speed=8,x-width="
      "16",
      "device "
      "virtio-net-pci,netdev=nic0,mac=52:54:00:00:00:00,host_mtu=4200,rx_queue_size=1024,romfile=,"
      "id=nic0,bus=nic0.port,addr=0x0.0x0"};
  const auto tree = tree_of(server("sandybridge-one-socket"));
  EXPECT_EQ(lines_of(tree), expected);
  EXPECT_EQ(tree.places, (std::vector<emu::PciPlace>{0, 2 * 8, 3 * 8}));
  ASSERT_EQ(tree.roots.size(), 1U);
  EXPECT_EQ(tree.roots.front().bridge, "hb0");
  EXPECT_EQ(tree.roots.front().first_port, 2U * 8);
  EXPECT_EQ(tree.buses, 4U);
}

TEST(EmuPcieTree, TwoSocketsAreTwoHostBridgesWithTheirNumaNodes) {
  for (const char* name : {"sandybridge-two-sockets", "westmere-two-iohs"}) {
    const Lines lines = lines_of(tree_of(server(name)));
    const auto bridges = std::count_if(lines.begin(), lines.end(), [](const auto& l) {
      return l.starts_with("device pxb-pcie,");
    });
    EXPECT_EQ(bridges, 2) << name;
    EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& l) {
      return l.ends_with(",numa_node=1");
    })) << name;
  }
  const auto westmere = buses_of(tree_of(server("westmere-two-iohs")));
  EXPECT_EQ(way_up(westmere, "gpu0"), (Lines{"gpu0.port", "hb0"}));
  EXPECT_EQ(way_up(westmere, "nic0"), (Lines{"nic0.port", "hb0"}));
  EXPECT_EQ(way_up(westmere, "gpu1"), (Lines{"gpu1.port", "hb1"}));
}

TEST(EmuPcieTree, TheSecondHostBridgeStartsBehindTheBusesOfTheFirst) {
  const Lines lines = lines_of(tree_of(server("westmere-two-iohs")));
  // Bus 1 is hb0's own, 2 and 3 are behind its ports.
  EXPECT_NE(std::find(lines.begin(), lines.end(),
                      "device pxb-pcie,id=hb1,bus=pcie.0,bus_nr=4,numa_node=1"),
            lines.end());
}

TEST(EmuPcieTree, DgxA100HasASwitchBelowASwitch) {
  const auto tree = tree_of(server("dgx-a100"));
  const auto buses = buses_of(tree);
  EXPECT_EQ(way_up(buses, "gpu0"),
            (Lines{"gpu0.port", "sw4", "sw4.port", "sw0", "sw0.port", "hb0"}));
  EXPECT_EQ(way_up(buses, "nic0"), (Lines{"nic0.port", "sw0", "sw0.port", "hb0"}));
  EXPECT_EQ(way_up(buses, "nic8"), (Lines{"nic8.port", "hb4"}));
  const Lines lines = lines_of(tree);
  const auto has = [&](const std::string& line) {
    return std::find(lines.begin(), lines.end(), line) != lines.end();
  };
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& line) {
    return line.starts_with("device pxb-pcie,id=hb2,") && line.ends_with("numa_node=7");
  }));
  EXPECT_TRUE(has("device xio3130-downstream,id=nvme0.port,bus=sw0,addr=0x4,chassis=1,slot=9"));
  EXPECT_TRUE(has("device nvme,serial=nvme0,id=nvme0,bus=nvme0.port,addr=0x0.0x0"));
  EXPECT_TRUE(has("device pvpanic-pci,id=nvswitch0,bus=nvswitch0.port,addr=0x0.0x0"));
}

TEST(EmuPcieTree, P4dHasItsGpusAndNicsBelowTheirSwitches) {
  const Topology topology = server("p4d");
  const auto buses = buses_of(tree_of(topology));
  for (const Device& device : topology.hosts.front().devices) {
    if (device.kind != DeviceKind::gpu && device.kind != DeviceKind::nic) continue;
    const auto way = way_up(buses, device.name);
    EXPECT_EQ(way.at(1), device.under) << device.name;
  }
}

TEST(EmuPcieTree, Gh200HasTwoHostBridgesOfOneNumaNode) {
  const auto tree = tree_of(server("gh200"));
  const auto buses = buses_of(tree);
  EXPECT_EQ(way_up(buses, "gpu0"), (Lines{"gpu0.port", "hb0"}));
  EXPECT_EQ(way_up(buses, "nic0"), (Lines{"nic0.port", "hb1"}));
  const Lines lines = lines_of(tree);
  // The GPU's link is unknown; the NIC's Gen5 is more than QEMU's ports support.
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [](const auto& l) { return l.ends_with("slot=2,hotplug=off"); }));
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(), [](const auto& l) {
    return l.ends_with("slot=4,hotplug=off,x-speed=16,x-width=16");
  }));
}

TEST(EmuPcieTree, EveryServerHasEveryDeviceOnceAndDistinctSlots) {
  for (const char* name : {"dgx-a100", "dgx-h100", "dgx-2", "p4d", "p5", "nd-a100-v4",
                           "threadripper-two-switchtec", "epyc-pex890xx"}) {
    const Topology topology = server(name);
    const auto tree = tree_of(topology);
    const auto buses = buses_of(tree);
    for (const Device& device : topology.hosts.front().devices)
      EXPECT_TRUE(buses.contains(device.name)) << name << " " << device.name;
    EXPECT_LE(tree.buses, 256U) << name;
    std::set<emu::PciPlace> places;
    for (std::size_t device = 0; device < tree.places.size(); ++device) {
      const bool bridge = topology.hosts.front().devices[device].kind == DeviceKind::host_bridge;
      EXPECT_EQ(tree.places[device] == 0, bridge) << name;
      EXPECT_TRUE(bridge || places.insert(tree.places[device]).second) << name;
    }
  }
}

TEST(EmuPcieTree, ADeviceRightBelowANumaNodeGetsAHostBridgeOfItsOwn) {
  const auto buses = buses_of(tree_of(
      R"({"name": "gpu0", "kind": "gpu", "under": "numa0"}, {"name": "nic0", "kind": "nic", "under": "numa0"})"));
  EXPECT_EQ(way_up(buses, "gpu0"), (Lines{"gpu0.port", "gpu0.bridge"}));
  EXPECT_EQ(way_up(buses, "nic0"), (Lines{"nic0.port", "nic0.bridge"}));
}

TEST(EmuPcieTree, FunctionsOfOneDeviceShareAPort) {
  const auto tree = tree_of(R"({"name": "hb0", "kind": "host-bridge", "under": "numa0"},
                               {"name": "nic0", "kind": "nic", "under": "hb0", "address": "0000:3b:00.0"},
                               {"name": "nic1", "kind": "nic", "under": "hb0", "address": "0000:3b:00.1"})");
  const Lines lines = lines_of(tree);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_TRUE(lines[2].ends_with(",id=nic0,bus=nic0.port,addr=0x0.0x0,multifunction=on"))
      << lines[2];
  EXPECT_TRUE(lines[3].ends_with(",id=nic1,bus=nic0.port,addr=0x0.0x1")) << lines[3];
}

TEST(EmuPcieTree, WhatQemuCannotHoldIsRefusedWithTheReason) {
  std::string bridges;
  for (int i = 0; i < 25; ++i)
    bridges += (i == 0 ? "" : ", ") + std::string(R"({"name": "hb)") + std::to_string(i) +
               R"(", "kind": "host-bridge", "under": "numa0"})";
  EXPECT_EQ(refusal(bridges),
            "h0: cannot be emulated: 25 host bridges; QEMU's q35 has room for 24");

  std::string ports = R"({"name": "hb0", "kind": "host-bridge", "under": "numa0"})";
  for (int i = 0; i < 33; ++i)
    ports += R"(, {"name": "nvme)" + std::to_string(i) + R"(", "kind": "nvme", "under": "hb0"})";
  EXPECT_EQ(refusal(ports),
            "h0: cannot be emulated: hb0 has 33 ports; a PCI bus has 32 device numbers");

  std::string buses;
  for (int bridge = 0; bridge < 9; ++bridge) {
    const std::string name = "hb" + std::to_string(bridge);
    buses += (bridge == 0 ? "" : ", ") + std::string(R"({"name": ")") + name +
             R"(", "kind": "host-bridge", "under": "numa0"})";
    for (int i = 0; i < 30; ++i)
      buses += R"(, {"name": "nvme)" + std::to_string(bridge * 100 + i) +
               R"(", "kind": "nvme", "under": ")" + name + "\"}";
  }
  EXPECT_EQ(refusal(buses),
            "h0: cannot be emulated: its tree takes 280 PCI buses; QEMU has one PCI domain of 256");

  EXPECT_EQ(refusal(R"({"name": "mlx", "kind": "nic", "under": "numa0"})"),
            "h0/mlx: emulation names a nic after the number in its name, 0 to 255; call it nic0 or "
            "the like");
}

TEST(EmuPcieTree, CommasInPathsAreDoubled) {
  const Topology topology = server("sandybridge-one-socket");
  const Graph graph(topology);
  const auto tree = emu::pcie_tree(topology.hosts.front(), 0, emu::gpu_memory({graph, models()}, 0),
                                   [](const Device&) { return "/a,b"; });
  EXPECT_TRUE(lines_of(tree)[2].ends_with("mem-path=/a,,b")) << lines_of(tree)[2];
}

}  // namespace
