#include <gtest/gtest.h>

#include <map>
#include <set>
#include <stdexcept>

#include "src/common/error.hpp"
#include "src/nccl/decision.hpp"
#include "src/nccl/history.hpp"
#include "src/nccl/log.hpp"
#include "src/nccl/paths.hpp"
#include "src/topology/topology_json.hpp"
#include "src/transport/policy/path_policy.hpp"
#include "src/verdict/verdict.hpp"
#include "tests/support/shared.hpp"

namespace gdr::nccl {
namespace {

const std::string project = GDR_PROJECT_DIR;

const ModelLibrary& models() {
  static const ModelLibrary library(project + "/models");
  return library;
}

Topology server(const std::string& name) {
  return load_topology(project + "/topologies/servers/" + name + ".json", {});
}

const PairDecision& pair(const Decision& decision, const Topology& topology, const std::string& gpu,
                         const std::string& nic) {
  for (const PairDecision& one : decision.pairs)
    if (topology.hosts[0].devices[one.gpu].name == gpu &&
        topology.hosts[0].devices[one.nic].name == nic)
      return one;
  throw std::runtime_error("no such pair");
}

TEST(NcclHistory, NumbersOfEveryVersion) {
  const auto word = [](const char* version, int number) {
    return path_word(version_number(version), number).value_or("-");
  };
  EXPECT_EQ(word("2.3.7", 3), "SOC");
  EXPECT_EQ(word("2.3.7", 4), "-");
  EXPECT_EQ(word("2.4.8", 3), "NODE");
  EXPECT_EQ(word("2.5.6", 4), "SYS");
  EXPECT_EQ(word("2.6.4", 2), "PIX");
  EXPECT_EQ(word("2.7.8", 5), "SYS");
  EXPECT_EQ(word("2.8.3", 2), "NVB");
  EXPECT_EQ(word("2.11.4", 6), "SYS");
  EXPECT_EQ(word("2.12.7", 5), "PXN");
  EXPECT_EQ(word("2.17.1", 7), "SYS");
  EXPECT_EQ(word("2.18.1", 9), "DIS");
  EXPECT_EQ(word("2.25.1", 4), "PXB");
  EXPECT_EQ(word("2.26.2", 4), "PIX");
  EXPECT_EQ(word("2.26.2", 7), "PHB");
  EXPECT_EQ(word("2.27.3", 7), "P2C");
  EXPECT_EQ(word("2.27.5", 6), "P2C");
  EXPECT_EQ(word("2.30.7", 9), "SYS");
  EXPECT_EQ(path_number(version_number("2.18.6"), PathType::sys), 7);
  EXPECT_EQ(path_number(version_number("2.6.4"), PathType::nvb), std::nullopt);
  EXPECT_THROW(version_number("two"), InputError);
}

TEST(NcclHistory, EndsWhereNothingIsKnown) {
  EXPECT_EQ(known_version("2.3"), 20300);
  EXPECT_EQ(known_version("2.2.13"), std::nullopt);
  EXPECT_EQ(known_version("2.30.99"), 23099);
  for (const char* newer : {"2.31", "2.31.0", "3.0", "", "2", "v2.18"})
    EXPECT_EQ(known_version(newer), std::nullopt) << newer;
  try {
    (void)decide(server("dgx-a100"), 0, models(), "3.0", {});
    ADD_FAILURE() << "an unknown version was accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "NCCL version \"3.0\": known are 2.3 to 2.30, as in 2.18.6; the decisions of "
                 "other versions are unknown");
  }
  const auto rules = [](const char* version) {
    const Topology topology =
        load_topology(std::string(GDR_PROJECT_DIR) + "/topologies/servers/dgx-a100.json",
                      {{"h0.nccl_version", version}});
    std::vector<std::string> names;
    for (const Finding& finding : judge(gdr::Graph(topology), models()).findings)
      if (finding.rule == "nccl-version-unknown")
        names.push_back(finding.where + ": " + finding.message);
    return names;
  };
  EXPECT_EQ(rules("2.30.7"), std::vector<std::string>{});
  EXPECT_EQ(rules("2.31.1"),
            std::vector<std::string>{
                "h0: NCCL 2.31.1 is not known here (known are 2.3 to 2.30): distances and the "
                "level are taken to be those of the newest known."});
}

/// gdr transfer logs lines like NCCL's, with numbers of its own.
TEST(NcclLog, LinesOfOurTransport) {
  using transport::NicDistance;
  using transport::TransportPath;
  const auto explained = [](NicDistance distance, TransportPath path, const std::string& reason) {
    transport::PathFacts facts;
    facts.memory = "bar0";
    facts.nics = "rxe0";
    facts.distance = distance;
    return read_log("gdr: " + transport::log_line(facts, {path, reason}) + "\n", "log").lines.at(0);
  };
  for (const NicDistance distance :
       {NicDistance::loc, NicDistance::pix, NicDistance::pxb, NicDistance::phb, NicDistance::sys}) {
    const Explained line = explained(distance, TransportPath::gdr, "peer memory");
    EXPECT_EQ(line.distance, to_string(distance));
    EXPECT_EQ(line.gdr, true);
    const std::string said = distance <= NicDistance::pxb
                                 ? "is near enough: GPUDirect RDMA is used."
                                 : "is too far, and GPUDirect RDMA is used nevertheless: one end "
                                   "asked for this path by name.";
    EXPECT_EQ(
        line.meaning,
        "This is a line of gdr transfer, whose numbers are LOC 0, PIX 1, PXB 2, PHB 3, SYS 4. For "
        "the level PXB the distance " +
            std::string(to_string(distance)) + " " + said);
  }
  EXPECT_NE(explained(NicDistance::phb, TransportPath::staged, "PHB is farther than PXB")
                .meaning.find("PHB is too far: the path is staged."),
            std::string::npos);
  EXPECT_NE(
      explained(NicDistance::pix, TransportPath::staged, "bar0 does not register")
          .meaning.find(
              "near enough, but the path is staged for another reason: bar0 does not register."),
      std::string::npos);
}

TEST(NcclLog, OfAVersionThatIsNotKnown) {
  const std::string line =
      "h:1:2 [0] NCCL INFO GPU Direct RDMA Disabled for GPU c1000 / HCA 0 (distance 7 > 4)\n";
  const Log log = read_log("h:1:2 [0] NCCL INFO NCCL version 3.0.1+cuda14.0\n" + line, "log");
  EXPECT_EQ(log.version, "3.0.1");
  EXPECT_EQ(log.lines.at(0).gdr, false);
  EXPECT_EQ(log.lines[0].distance, std::nullopt);
  EXPECT_EQ(
      log.lines[0].meaning.find("GPUDirect RDMA is not used. NCCL 3.0.1 is not a known version "
                                "(2.3 to 2.30), so the meaning of the distances 7 and 4 is "
                                "unknown. In known versions they are: SYS > PXB in 2.12"),
      0U)
      << log.lines[0].meaning;
  EXPECT_THROW(read_log(line, "log", "3.0"), InputError);
}

TEST(NcclHistory, LinesOfEveryVersion) {
  const auto line = [](const char* version, bool enabled) {
    LogLine one{
        "0000:c1:00.0", 3,       1,   11, "mlx5_0", enabled ? PathType::pxb : PathType::sys, {},
        PathType::pxb,  enabled, true};
    if (version_number(version) < 20600) one.level = PathType::phb;
    return gdr_log_line(version_number(version), one);
  };
  EXPECT_EQ(line("2.3.7", true), "");
  EXPECT_EQ(line("2.3.7", false),
            "NET/IB : GPU Direct RDMA Disabled for GPU 1 / HCA mlx5_0 (distance 3 >= 2)");
  EXPECT_EQ(line("2.4.8", true),
            "NET/IB : GPU Direct RDMA Enabled for GPU 1[1] / HCA 11 (distance 1 < 2), read 1");
  EXPECT_EQ(line("2.5.6", true),
            "NET/IB : GPU Direct RDMA Enabled for GPU c1000 / HCA 11 (distance 1 < 2), read 1");
  EXPECT_EQ(line("2.18.6", true),
            "GPU Direct RDMA Enabled for GPU c1000 / HCA 11 (distance 4 <= 4), read 1");
  EXPECT_EQ(line("2.18.6", false),
            "GPU Direct RDMA Disabled for GPU c1000 / HCA 11 (distance 7 > 4)");
  EXPECT_EQ(line("2.21.5", false),
            "GPU Direct RDMA Disabled for GPU c1000 / HCA b (distance 7 > 4)");
  EXPECT_EQ(line("2.24.3", false), "GPU Direct RDMA Disabled for GPU 3 / HCA b (distance 7 > 4)");
  EXPECT_EQ(line("2.26.2", true),
            "GPU Direct RDMA Enabled for GPU 3 / HCA b (distance 5 <= 5), read 1 mode Default");
  EXPECT_EQ(line("2.29.1", false),
            "GPU Direct RDMA Disabled for GPU/0-c1000 (rank 3) - NET/0-11 (distance 9 > 5)");
  EXPECT_EQ(line("2.30.7", false), "");
}

TEST(NcclLog, WhatAVersionPrintsIsExplainedAsItDecided) {
  for (const char* version : {"2.4.8", "2.5.6", "2.7.8", "2.11.4", "2.17.1", "2.18.6", "2.22.3",
                              "2.24.3", "2.26.2", "2.27.3", "2.28.9", "2.29.1"})
    for (const bool enabled : {true, false}) {
      const LogLine one{"0000:c1:00.0",
                        3,
                        1,
                        0,
                        "mlx5_0",
                        enabled ? PathType::pix : PathType::sys,
                        {},
                        enabled ? PathType::phb : PathType::pxb,
                        enabled,
                        false};
      const Log log =
          read_log("h:1:2 [0] NCCL INFO " + gdr_log_line(version_number(version), one) + "\n",
                   "log", version);
      ASSERT_EQ(log.lines.size(), 1U) << version;
      EXPECT_EQ(log.lines[0].gdr, enabled) << version;
      EXPECT_EQ(log.lines[0].distance, enabled ? "PIX" : "SYS") << version;
    }
}

/// Row 37 of the published problems: the number means nothing without the version.
TEST(NcclLog, DistanceSevenIsAnotherOneInAnotherVersion) {
  const std::string line = "GPU Direct RDMA Disabled for GPU c1000 / HCA 0 (distance 7 > 4)";
  const auto meaning = [&](const std::string& before, const std::string& version) {
    return read_log(before + "h:1:2 [0] NCCL INFO " + line + "\n", "log", version)
        .lines.at(0)
        .meaning;
  };
  EXPECT_NE(meaning("NCCL version 2.18.6+cuda12.1\n", "")
                .find("the link between sockets (SYS), and the level allows PXB"),
            std::string::npos);
  EXPECT_NE(meaning("NCCL version 2.26.2+cuda12.8\n", "")
                .find("the CPU of one NUMA node (PHB), and the level allows PIX"),
            std::string::npos);
  EXPECT_NE(meaning("", "2.18").find("may not be faster"), std::string::npos);
  EXPECT_NE(meaning("", "").find("SYS > PXB in 2.12 to 2.17"), std::string::npos);
  EXPECT_NE(meaning("", "2.4.8").find("from another version"), std::string::npos);
}

TEST(NcclLog, OtherLinesAreExplained) {
  const Log log = read_log(
      "a:1:1 [0] NCCL INFO NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'\n"
      "a:1:1 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 8[c1000] [send] via NET/IB/0\n"
      "a:1:1 [0] NCCL INFO Channel 00/0 : 0[c1000] -> 8[c1000] [send] via NET/IB/0/GDRDMA(PCI)\n"
      "a:1:1 [0] NCCL INFO NCCL_NET_GDR_LEVEL set by environment to PHB\n"
      "a:1:1 [0] NCCL INFO comm 0x1 rank 0\n",
      "log");
  ASSERT_EQ(log.lines.size(), 3U);
  EXPECT_EQ(log.lines[0].gdr, false);
  EXPECT_NE(log.lines[0].meaning.find("nvidia-peermem"), std::string::npos);
  EXPECT_EQ(log.lines[1].gdr, false);
  EXPECT_EQ(log.lines[2].gdr, true);
  EXPECT_EQ(log.settings, std::vector<std::string>{"NCCL_NET_GDR_LEVEL set by environment to PHB"});
  EXPECT_THROW(read_log("nothing\n", "x", ""), InputError);
}

TEST(NcclDecision, IsTheViewOfTheVersion) {
  const Topology topology = server("dgx-a100");
  for (const char* version : {"2.12.7", "2.18.6", "2.22.3", "2.27.3", "2.29.1"}) {
    const Decision decision = decide(topology, 0, models(), version, {});
    Settings settings;
    settings.version = version;
    const View expected = view(topology, 0, &models(), settings);
    std::size_t at = 0;
    for (const auto& nets : expected.gpu_nets)
      for (const GpuNet& net : nets) {
        EXPECT_EQ(decision.pairs.at(at).receive, net.gdr_write) << version;
        EXPECT_EQ(decision.pairs.at(at).send, net.gdr_read) << version;
        ++at;
      }
  }
}

/// 64 GT/s x8 is as much as 32 GT/s x16, but versions before 2.11.4 have neither in their table.
TEST(NcclDecision, OldVersionsDoNotKnowFastLinks) {
  const auto noted = [&](const char* name, const char* version,
                         const std::vector<Setting>& settings) {
    const Topology topology = load_topology(
        std::string(GDR_PROJECT_DIR) + "/topologies/servers/" + name + ".json", settings);
    for (const std::string& note : decide(topology, 0, models(), version, {}).notes)
      if (note.find("does not know links faster than 16 GT/s") != std::string::npos) return note;
    return std::string();
  };
  const std::vector<Setting> gen6{{"h0/nic0.link", "gen6x8"},
                                  {"h0/nic0.link_capability", "gen6x8"}};
  EXPECT_NE(noted("dgx-a100", "2.10.3", gen6).find("nic0 (gen6x8)"), std::string::npos);
  EXPECT_EQ(noted("dgx-a100", "2.10.3", {}), "") << "Gen4 is in every table";
  EXPECT_EQ(noted("dgx-a100", "2.11.4", gen6), "");
  EXPECT_NE(noted("dgx-h100", "2.10.3", {}).find(" more"), std::string::npos);
}

TEST(NcclDecision, LevelsByNameAndNumber) {
  const Topology topology = server("dgx-a100");
  const auto receives = [&](const std::string& version, const std::string& level, const char* nic) {
    const Environment environment{{"NCCL_NET_GDR_LEVEL", level}, {"NCCL_PXN_DISABLE", "1"}};
    return pair(decide(topology, 0, models(), version, environment), topology, "gpu0", nic).receive;
  };
  EXPECT_TRUE(receives("2.18.6", "PXB", "nic0"));
  EXPECT_FALSE(receives("2.18.6", "PIX", "nic0"));
  EXPECT_TRUE(receives("2.18.6", "2", "nic0"));
  EXPECT_FALSE(receives("2.18.6", "1", "nic0"));
  EXPECT_FALSE(receives("2.18.6", "0", "nic0"));
  EXPECT_TRUE(receives("2.18.6", "SYS", "nic7"));
  EXPECT_TRUE(receives("2.18.6", "4", "nic7"));
  EXPECT_FALSE(receives("2.18.6", "3", "nic7"));
  // Up to 2.5 a distance must be below the number: 2 is the default, 5 allows everything.
  EXPECT_TRUE(receives("2.4.8", "2", "nic0"));
  EXPECT_FALSE(receives("2.4.8", "1", "nic0"));
  EXPECT_FALSE(receives("2.4.8", "4", "nic7"));
  EXPECT_TRUE(receives("2.4.8", "5", "nic7"));
}

TEST(NcclDecision, NicsAreChosenByName) {
  EXPECT_TRUE(hca_selected("mlx5_1", "mlx5_10", 1)) << "a prefix is enough";
  EXPECT_FALSE(hca_selected("=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(hca_selected("=mlx5_1,mlx5_10", "mlx5_10", 1));
  EXPECT_FALSE(hca_selected("^mlx5_1", "mlx5_1", 1));
  EXPECT_TRUE(hca_selected("^=mlx5_1", "mlx5_10", 1));
  EXPECT_TRUE(hca_selected("mlx5_0:1", "mlx5_0", 1));
  EXPECT_FALSE(hca_selected("mlx5_0:2", "mlx5_0", 1));
  EXPECT_FALSE(hca_selected("", "mlx5_0", 1));
  const Topology topology = server("dgx-a100");
  std::set<std::string> nics;
  for (const PairDecision& one :
       decide(topology, 0, models(), "2.18.6", {{"NCCL_IB_HCA", "=mlx5_0,mlx5_1"}}).pairs)
    nics.insert(topology.hosts[0].devices[one.nic].rdma_device);
  EXPECT_EQ(nics, (std::set<std::string>{"mlx5_0", "mlx5_1"}));
}

TEST(NcclDecision, SettingsThatDoNotFitAreToldOrRefused) {
  const Topology topology = server("dgx-a100");
  const auto notes = [&](const Environment& environment) {
    return decide(topology, 0, models(), "2.18.6", environment).notes;
  };
  EXPECT_EQ(notes({}).size(), 0U);
  EXPECT_NE(notes({{"NCCL_NET_GDR_LEVEL", "near"}}).at(0).find("not a level"), std::string::npos);
  EXPECT_NE(notes({{"NCCL_NET_GDR_C2C", "1"}}).at(0).find("2.26"), std::string::npos);
  EXPECT_NE(notes({{"NCCL_IB_HCA", "nothing"}}).at(0).find("sockets"), std::string::npos);
  EXPECT_THROW(notes({{"NCCL_NET_GDR_READ", "yes"}}), InputError);
  EXPECT_THROW(parse_environment("NCCL_DEBUG\n", "env"), InputError);
  EXPECT_EQ(parse_environment("# comment\nexport NCCL_IB_HCA=\"mlx5_0\"\n", "env"),
            (Environment{{"NCCL_IB_HCA", "mlx5_0"}}));
}

}  // namespace
}  // namespace gdr::nccl
