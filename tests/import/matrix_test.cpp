#include <gtest/gtest.h>

#include <set>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"
#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {
namespace {

Topology import_text(const std::string& text) {
  return import_machine(std::vector<NamedText>{{text, "matrix.txt"}});
}

const Device& device(const Topology& topology, const std::string& name) {
  return get(topology, find_device(topology, name));
}

std::string distance(const Topology& topology, const char* a, const char* b) {
  return smi_distance(Graph(topology), find_device(topology, a), find_device(topology, b));
}

std::vector<std::string> rules(const Topology& topology) {
  std::vector<std::string> names;
  for (const Remark& remark : topology.hosts.at(0).remarks) names.push_back(remark.rule);
  return names;
}

constexpr const char* table =
    "$ nvidia-smi topo -m\n"
    "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\n"
    "GPU0\t X \tPIX\tSYS\tPXB\tSYS\t0-15\t0\t\tN/A\n"
    "GPU1\tPIX\t X \tSYS\tPXB\tSYS\t0-15\t0\t\tN/A\n"
    "GPU2\tSYS\tSYS\t X \tSYS\tNODE\t16-31\t1\t\tN/A\n"
    "NIC0\tPXB\tPXB\tSYS\t X \tSYS\t\t\t\t\n"
    "NIC1\tSYS\tSYS\tNODE\tSYS\t X \t\t\t\t\n"
    "\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe as well as the SMP "
    "interconnect\n"
    "\nNIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";

TEST(TopoMatrix, GivesClassesAndNoSwitches) {
  const Topology topology = import_text(table);
  const Host& host = topology.hosts.at(0);
  EXPECT_EQ(host.devices.size(), 5U);
  EXPECT_EQ(distance(topology, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "PXB");
  EXPECT_EQ(distance(topology, "gpu2", "nic1"), "NODE");
  EXPECT_EQ(distance(topology, "gpu2", "nic0"), "SYS");
  EXPECT_EQ(device(topology, "nic1").under, "numa1") << "NODE to GPU2 puts it on that GPU's node";
  EXPECT_EQ(device(topology, "nic1").rdma_device, "mlx5_1");
  EXPECT_EQ(device(topology, "gpu0").place_known, false);
  EXPECT_TRUE(rules(topology).empty());
  EXPECT_EQ(read_topology(to_json(topology), "again", ""), topology);
}

/// The route of a pair follows its distance: one switch, several, the CPU, two sockets.
TEST(TopoMatrix, TheVerdictFollowsTheClass) {
  const Topology topology = import_text(table);
  const ModelLibrary models(std::string(GDR_PROJECT_DIR) + "/models");
  const Verdict verdict = judge(Graph(topology), models);
  const auto route = [&](const std::string& from, const std::string& to) {
    for (const Pair& pair : verdict.pairs)
      if (pair.from == "h0/" + from && pair.to == "h0/" + to) return pair.route;
    return PairRoute::none;
  };
  EXPECT_EQ(route("gpu0", "gpu1"), PairRoute::pci_switch);
  EXPECT_EQ(route("gpu0", "nic0"), PairRoute::pci_switch);
  EXPECT_EQ(route("gpu2", "nic1"), PairRoute::host_bridge);
  EXPECT_EQ(route("gpu2", "nic0"), PairRoute::socket_link);
  for (const Pair& pair : verdict.pairs)
    EXPECT_EQ(pair.answer, PairAnswer::unknown) << pair.from << " " << pair.to;
  std::set<std::string> found;
  for (const Finding& finding : verdict.findings) found.insert(finding.rule);
  EXPECT_TRUE(found.contains("crosses-sockets"));
  EXPECT_TRUE(found.contains("acs-unknown"));
  EXPECT_TRUE(found.contains("cpu-unknown"));
  EXPECT_FALSE(found.contains("place-unknown"));
}

TEST(TopoMatrix, LegendThatIsShiftedIsAFinding) {
  std::string text = table;
  text.replace(text.find("NIC1: mlx5_1"), 12, "NIC1: mlx5_7");
  const Topology topology = import_text(text);
  EXPECT_EQ(rules(topology), std::vector<std::string>{"nic-number-is-not-device-number"});
  EXPECT_NE(topology.hosts.at(0).remarks.at(0).message.find("NIC1 is mlx5_7"), std::string::npos);
  EXPECT_EQ(device(topology, "nic1").rdma_device, "mlx5_7");
}

TEST(TopoMatrix, LabelsThatDoNotFitTheNumaNodesAreFindings) {
  const Topology far = import_text(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-15\t0\nGPU1\tSYS\t X "
      "\t0-15\t0\n");
  EXPECT_EQ(rules(far), std::vector<std::string>{"matrix-contradicts-numa"});
  EXPECT_EQ(distance(far, "gpu0", "gpu1"), "SYS");
  const Topology near = import_text(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPHB\t0-15\t0\nGPU1\tPHB\t X "
      "\t16-31\t1\n");
  EXPECT_EQ(rules(near), std::vector<std::string>{"matrix-contradicts-numa"});
  const Topology good = import_text(
      "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tSYS\t0-15\t0\nGPU1\tSYS\t X "
      "\t16-31\t1\n");
  EXPECT_TRUE(rules(good).empty());
}

TEST(TopoMatrix, ReadsTheColumnsOfOldDrivers) {
  const Topology topology = import_text(
      "        GPU0    GPU1    mlx5_1  mlx5_0  CPU Affinity\n"
      "GPU0     X      SOC     SOC     PHB     0-13\n"
      "GPU1    SOC      X      PIX     SOC     14-27\n"
      "mlx5_1  SOC     PIX      X      SOC\n"
      "mlx5_0  PHB     SOC     SOC      X\n");
  EXPECT_EQ(device(topology, "nic0").rdma_device, "mlx5_1") << "in the table's order";
  EXPECT_EQ(distance(topology, "gpu1", "nic0"), "PIX");
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "SYS");
}

TEST(TopoMatrix, RowsThatAreCutOrMalformedLeaveTheOthersStanding) {
  const Topology cut = import_text(
      "\tGPU0\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\tNODE\t0-19\t0\nNIC0\tPI");
  EXPECT_EQ(distance(cut, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(distance(cut, "nic0", "nic1"), "unknown") << "no row shows it";
  const Topology wide = import_text(
      "\tGPU0\tGPU1\tGPU2\tCPU Affinity\tNUMA Affinity\n"
      "GPU0\t X \tPIX\tPHB\t0-7\t0\nGPU1\tPIX\tPHB\t X \tPHB\t0-7\t0\nGPU2\tPHB\tPHB\t X "
      "\t0-7\t0\n");
  EXPECT_EQ(rules(wide), std::vector<std::string>{"matrix-row-malformed"});
  EXPECT_EQ(distance(wide, "gpu0", "gpu1"), "PIX");
  EXPECT_EQ(distance(wide, "gpu1", "gpu2"), "PHB");
}

TEST(TopoMatrix, NvlinksGoThroughSwitchesWhereAGpuHasNotEnoughForAll) {
  const auto links = [](const std::string& word, int gpus) {
    std::string text;
    for (int i = 0; i < gpus; ++i) text += "\tGPU" + std::to_string(i);
    text += "\tCPU Affinity\tNUMA Affinity\n";
    for (int i = 0; i < gpus; ++i) {
      text += "GPU" + std::to_string(i);
      for (int j = 0; j < gpus; ++j) text += i == j ? "\t X " : "\t" + word;
      text += "\t0-7\t0\n";
    }
    return import_text(text);
  };
  const Topology direct = links("NV4", 4);
  EXPECT_EQ(direct.hosts.at(0).nvlinks.size(), 6U);
  EXPECT_EQ(distance(direct, "gpu1", "gpu3"), "NV4");
  const Topology switched = links("NV12", 8);
  EXPECT_EQ(switched.hosts.at(0).nvlinks.size(), 8U);
  EXPECT_EQ(switched.hosts.at(0).nvlinks.at(0).to, "");
  EXPECT_EQ(distance(switched, "gpu1", "gpu7"), "NV12");
}

/// Found by fuzzing: with a listing of NICs and a table that also has GPUs, device names must be
/// unique.
TEST(TopoMatrix, ANicHasNoNvlink) {
  const Topology topology = import_text(
      "\tGPU0\tGPU1\tNIC0\nGPU0\t X \tNV4\tNV4\nGPU1\tNV4\t X \tSYS\nNIC0\tNV4\tSYS\t X \n");
  EXPECT_EQ(topology.hosts.at(0).nvlinks.size(), 1U);
  EXPECT_EQ(read_topology(to_json(topology), "again", ""), topology);
}

TEST(TopoMatrix, ATreeWithoutGpusKeepsItsNics) {
  const Topology topology = import_text(
      std::string(
          "01:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n\n") +
      table);
  EXPECT_EQ(topology.hosts.at(0).devices.size(), 1U);
  EXPECT_EQ(rules(topology).at(0), "matrix-not-matched");
  EXPECT_EQ(read_topology(to_json(topology), "again", ""), topology);
}

TEST(TopoMatrix, ATreeAndATableThatDisagreeAreAFinding) {
  const std::string tree =
      "-[0000:00]-+-00.0  Intel Corporation Device 09a2\n"
      "           +-01.0-[01]----00.0  NVIDIA Corporation Device 2330\n"
      "           \\-02.0-[02]----00.0  NVIDIA Corporation Device 2330\n\n";
  const auto both = [&](const std::string& word) {
    return rules(import_text(tree + "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \t" +
                             word + "\t0-7\t0\nGPU1\t" + word + "\t X \t0-7\t0\n"));
  };
  EXPECT_TRUE(both("PHB").empty());
  EXPECT_EQ(both("PIX"), std::vector<std::string>{"matrix-contradicts-tree"});
}

}  // namespace
}  // namespace gdr
