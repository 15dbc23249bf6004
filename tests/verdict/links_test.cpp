#include <gtest/gtest.h>

#include "tests/support/verdict_support.hpp"

// Links, read requests, ordering, RoCE, NCCL's level, shared uplinks, and the bandwidths.

using gdr::PairAnswer;
using gdr::Severity;
using verdict_test::apart;
using verdict_test::finding;
using verdict_test::fires;
using verdict_test::HostText;
using verdict_test::judge;
using verdict_test::one_switch;
using verdict_test::pair;

namespace {

TEST(VerdictLink, ANicWiderThanItsSlot) {
  const gdr::Verdict verdict =
      judge(HostText{.devices = one_switch()}, {{"h0/nic0.link", "gen3x8"}});
  const gdr::Finding f = finding(verdict, "nic-wider-than-slot");
  EXPECT_EQ(f.severity, Severity::error) << "6.6 of 25 GB/s";
  EXPECT_EQ(f.where, "h0/nic0");
  EXPECT_EQ(f.message,
            "The network ports carry 25.0 GB/s (200 Gb/s), the slot's gen3x8 link only 6.6 GB/s of "
            "payload.");
  EXPECT_EQ(f.remedy, "Move the NIC to a wider or faster slot, or count on the slot's rate.");
  EXPECT_FALSE(fires(verdict, "link-below-device")) << "once is enough";
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}), "nic-wider-than-slot"));
  EXPECT_EQ(finding(judge(HostText{.devices = one_switch()}, {{"h0/nic0.link", "gen4x8"}}),
                    "nic-wider-than-slot")
                .severity,
            Severity::warning)
      << "13.6 of 25 GB/s";
}

TEST(VerdictLink, PayloadsThatDoNotFit) {
  const auto with = [](const char* gpu, const char* nic) {
    return judge(HostText{.devices = one_switch()},
                 {{"h0/gpu0.max_payload", gpu}, {"h0/nic0.max_payload", nic}});
  };
  EXPECT_FALSE(fires(with("256B", "256B"), "payload-mismatch"));
  for (const auto& [gpu, nic] : {std::pair("128B", "512B"), std::pair("512B", "128B")}) {
    EXPECT_EQ(pair(with(gpu, nic), "h0/gpu0", "h0/nic0").answer, PairAnswer::blocked);
    EXPECT_EQ(finding(with(gpu, nic), "payload-mismatch").severity, Severity::error);
  }
  EXPECT_EQ(finding(with("128B", "512B"), "payload-mismatch").message,
            "nic0 sends TLPs of up to 512B and this device is set to 128B: it drops larger ones as "
            "malformed.");
  const auto far = judge(HostText{.devices = apart("hb1")},
                         {{"h0/gpu0.max_payload", "128B"}, {"h0/nic0.max_payload", "512B"}});
  EXPECT_FALSE(fires(far, "payload-mismatch")) << "the root complex makes TLPs anew";
}

TEST(VerdictLink, TwoPortsThatExceedTheBestSlot) {
  const auto with = [](const char* ports, const char* rate) {
    return judge(
        HostText{.cpu = "sapphire-rapids", .devices = apart("hb0", "h100-pcie", "connectx-7")},
        {{"link", "gen5x16"}, {"h0/nic0.ports", ports}, {"h0/nic0.port_rate", rate}});
  };
  const gdr::Finding f = finding(with("2", "400Gb/s"), "nic-wider-than-slot");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_EQ(f.message.substr(0, 66),
            "The network ports together carry 100.0 GB/s (800 Gb/s), the slot's")
      << f.message;
  EXPECT_TRUE(f.message.ends_with("of payload, which is enough for one port alone.")) << f.message;
  EXPECT_EQ(f.remedy,
            "Count on the slot's rate for all ports together; no slot of this machine makes the "
            "NIC faster.");
  EXPECT_FALSE(fires(with("1", "400Gb/s"), "nic-wider-than-slot"));
  const gdr::Finding one = finding(with("1", "800Gb/s"), "nic-wider-than-slot");
  EXPECT_EQ(one.message.find("alone"), std::string::npos) << one.message;
  EXPECT_EQ(one.remedy, "Count on the slot's rate; no slot of this machine makes the NIC faster.");
}

TEST(VerdictLink, ASlotWorseThanItsGpu) {
  const auto with = [](const char* link) {
    return judge(HostText{.devices = one_switch()}, {{"h0/gpu0.link", link}});
  };
  EXPECT_TRUE(with("gen4x16").findings.empty());
  EXPECT_EQ(pair(with("gen4x8"), "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
  const gdr::Finding half = finding(with("gen4x8"), "link-below-device");
  EXPECT_EQ(half.severity, Severity::warning);
  EXPECT_EQ(half.where, "h0/gpu0");
  EXPECT_EQ(half.message,
            "The link runs at gen4x8 where this device could train gen4x16: 13.6 GB/s instead of "
            "27.2 GB/s of payload.");
  EXPECT_EQ(pair(with("gen1x1"), "h0/gpu0", "h0/nic0").answer, PairAnswer::slow);
  EXPECT_EQ(finding(with("gen1x1"), "link-below-device").severity, Severity::error);
}

TEST(VerdictLink, OnlyWhatBothEndsCouldTrainIsMissed) {
  const auto fires_below = [](const std::string& cpu, const std::string& gpu,
                              const std::string& link) {
    return fires(
        judge(HostText{.cpu = cpu, .devices = apart("hb0", gpu)}, {{"h0/gpu0.link", link}}),
        "link-below-device");
  };
  EXPECT_FALSE(fires_below("epyc-rome", "h100-pcie", "gen4x16")) << "a Gen5 card in a Gen4 machine";
  EXPECT_TRUE(fires_below("epyc-genoa", "h100-pcie", "gen4x16"));
  EXPECT_FALSE(fires_below("generic", "h100-pcie", "gen4x16")) << "the machine is not known";
  EXPECT_TRUE(fires_below("generic", "h100-pcie", "gen4x8")) << "but the card's width is";
  EXPECT_FALSE(fires_below("epyc-rome", "generic", "gen3x8"));
}

TEST(VerdictLink, TheLanesOfAGpuThatNvlinkJoinsToItsCpuAreTheBoards) {
  const HostText host{
      .cpu = "power9",
      .devices = apart("hb0", "v100-sxm2-16gb"),
      .more = R"(, "nvlinks": [{"from": "gpu0", "to": "numa0", "count": 3, "model": "nvlink2"}])"};
  EXPECT_FALSE(fires(judge(host, {{"h0/gpu0.link", "gen3x2"}}), "link-below-device"));
}

TEST(VerdictLink, ANicWhoseNetworkFitsIsANote) {
  const auto with = [](const char* rate) {
    return judge(HostText{.devices = one_switch()},
                 {{"h0/nic0.link", "gen4x8"}, {"h0/nic0.port_rate", rate}});
  };
  EXPECT_EQ(finding(with("100Gb/s"), "link-below-device").severity, Severity::note);
  EXPECT_FALSE(fires(with("200Gb/s"), "link-below-device"));
}

TEST(VerdictLink, AWorseSlotDoesNotImproveTheVerdict) {
  for (const char* link : {"gen4x16", "gen4x8", "gen3x8", "gen1x1"})
    EXPECT_EQ(pair(judge(HostText{.devices = apart("hb1")}, {{"h0/gpu0.link", link}}), "h0/gpu0",
                   "h0/nic0")
                  .answer,
              PairAnswer::slow)
        << link;
}

TEST(VerdictLink, ALinkAboveItsModelIsANote) {
  const auto with = [](const char* link) {
    return judge(HostText{.devices = one_switch()}, {{"h0/gpu0.link", link}});
  };
  const gdr::Finding f = finding(with("gen5x16"), "link-above-device");
  EXPECT_EQ(f.severity, Severity::note);
  EXPECT_EQ(f.where, "h0/gpu0");
  EXPECT_EQ(f.message,
            "The file says gen5x16, and the model a100-pcie-40gb can do gen4x16 at most; the "
            "verdict takes the file's word.");
  EXPECT_FALSE(fires(with("gen4x16"), "link-above-device"));
}

TEST(VerdictLink, AllPortsInUseCount) {
  EXPECT_TRUE(
      fires(judge(HostText{.devices = one_switch("", R"(, "ports": 2)")}), "nic-wider-than-slot"));
  EXPECT_FALSE(
      fires(judge(HostText{.devices = one_switch("", R"(, "ports": 1)")}), "nic-wider-than-slot"));
}

TEST(VerdictLink, ADegradedLinkIsAnErrorBelowHalf) {
  const gdr::Verdict half =
      judge(HostText{.devices = one_switch(R"(, "link_capability": "gen4x16")")},
            {{"h0/gpu0.link", "gen4x8"}});
  EXPECT_EQ(pair(half, "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
  EXPECT_EQ(finding(half, "link-degraded").severity, Severity::warning);
  const gdr::Verdict tenth =
      judge(HostText{.devices = one_switch(R"(, "link_capability": "gen4x16")")},
            {{"h0/gpu0.link", "gen1x16"}});
  EXPECT_EQ(pair(tenth, "h0/gpu0", "h0/nic0").answer, PairAnswer::slow);
  const gdr::Finding f = finding(tenth, "link-degraded");
  EXPECT_EQ(f.severity, Severity::error);
  EXPECT_EQ(f.where, "h0/gpu0");
  EXPECT_EQ(f.message,
            "The link runs at gen1x16 although both ends can do gen4x16: 3.4 GB/s instead of 27.2 "
            "GB/s of payload.");
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch(R"(, "link_capability": "gen4x16")")}),
                     "link-degraded"));
}

TEST(VerdictLink, SlowIsCertainEvenWhenAcsIsNot) {
  const gdr::Verdict verdict =
      judge(HostText{.devices = one_switch(R"(, "link_capability": "gen4x16")", "",
                                           R"("max_payload": "256B")")},
            {{"h0/gpu0.link", "gen1x16"}});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::slow);
}

TEST(VerdictLink, SmallReadRequests) {
  const gdr::Verdict verdict =
      judge(HostText{.devices = one_switch()}, {{"h0/nic0.max_read_request", "128B"}});
  EXPECT_EQ(finding(verdict, "small-read-requests").severity, Severity::warning);
  EXPECT_LT(pair(verdict, "h0/gpu0", "h0/nic0").bandwidth.read->bytes_per_second,
            pair(judge(HostText{.devices = one_switch()}), "h0/gpu0", "h0/nic0")
                .bandwidth.read->bytes_per_second);
  EXPECT_FALSE(
      fires(judge(HostText{.devices = one_switch()}, {{"h0/nic0.max_read_request", "4096B"}}),
            "small-read-requests"));
}

TEST(VerdictOrdering, StrictOrderCostsWhereTheCpuNeedsRelaxed) {
  const auto with = [](const std::string& cpu, const std::string& devices, bool relaxed) {
    return judge(HostText{.cpu = cpu, .devices = devices},
                 {{"h0/nic0.relaxed_ordering", relaxed ? "true" : "false"}});
  };
  const std::string emr = apart("hb0", "h100-pcie", "connectx-7");
  const gdr::Finding f = finding(with("emerald-rapids", emr, false), "relaxed-ordering-off");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_NE(f.message.find("at 16.0 GB/s at most"), std::string::npos) << f.message;
  EXPECT_FALSE(fires(with("emerald-rapids", emr, true), "relaxed-ordering-off"));
  EXPECT_FALSE(fires(with("ice-lake-sp", emr, false), "relaxed-ordering-off"));
  EXPECT_FALSE(fires(with("emerald-rapids", one_switch(), false), "relaxed-ordering-off"));
}

TEST(VerdictOrdering, RelaxedOrderingBreaksOldNccl) {
  const gdr::Verdict old =
      judge(HostText{.devices = one_switch("", R"(, "relaxed_ordering": true)")},
            {{"nccl_version", "2.7.8"}});
  EXPECT_EQ(finding(old, "relaxed-ordering-unsafe").severity, Severity::warning);
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch("", R"(, "relaxed_ordering": true)")},
                           {{"nccl_version", "2.8"}}),
                     "relaxed-ordering-unsafe"));
}

TEST(VerdictNetwork, LossyRoceAndGidVersion) {
  const auto with = [](const std::string& nic) {
    return judge(HostText{.devices = one_switch("", nic)});
  };
  const std::string ethernet = R"(, "link_layer": "ethernet")";
  EXPECT_EQ(finding(with(ethernet + R"(, "lossless": false)"), "roce-lossy").severity,
            Severity::warning);
  EXPECT_FALSE(fires(with(ethernet + R"(, "lossless": true)"), "roce-lossy"));
  EXPECT_FALSE(fires(with(ethernet), "roce-lossy"));
  EXPECT_EQ(finding(with(ethernet + R"(, "gid_type": 1)"), "gid-not-rocev2").severity,
            Severity::warning);
  EXPECT_FALSE(fires(with(ethernet + R"(, "gid_type": 2)"), "gid-not-rocev2"));
}

TEST(VerdictNccl, TheLevelThatAWayNeeds) {
  const gdr::Verdict far = judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0")});
  const gdr::Finding f = finding(far, "gdr-level-too-low");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_EQ(f.message,
            "NCCL rates this route PHB and with its default level PXB stages through host memory "
            "instead of using GPUDirect RDMA.");
  EXPECT_EQ(f.remedy, "Set NCCL_NET_GDR_LEVEL=PHB and compare the bandwidth.");
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}), "gdr-level-too-low"));
  for (const char* enough : {"PHB", "SYS", "3", "5"})
    EXPECT_FALSE(fires(judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0")},
                             {{"nccl_net_gdr_level", enough}}),
                       "gdr-level-too-low"))
        << enough;
  for (const char* low : {"PIX", "PXB", "2", "0"})
    EXPECT_TRUE(fires(judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0")},
                            {{"nccl_net_gdr_level", low}}),
                      "gdr-level-too-low"))
        << low;
  EXPECT_TRUE(fires(judge(HostText{.devices = one_switch()}, {{"nccl_net_gdr_level", "LOC"}}),
                    "gdr-level-too-low"));
}

TEST(VerdictNccl, AmdGpusRunRccl) {
  const gdr::Finding f = finding(
      judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0", "mi100")}), "gdr-level-too-low");
  EXPECT_TRUE(f.message.starts_with("RCCL rates this route PHB")) << f.message;
  EXPECT_EQ(f.remedy, "Set NCCL_NET_GDR_LEVEL=PHB and compare the bandwidth.")
      << "RCCL takes the same variables";
}

TEST(VerdictNccl, ForcingASlowWayMayNotHelp) {
  const gdr::Finding f = finding(judge(HostText{.devices = apart("hb1")}), "gdr-level-too-low");
  EXPECT_EQ(
      f.remedy,
      "Set NCCL_NET_GDR_LEVEL=SYS; it may not help, since the CPU forwards peer traffic slowly.");
}

TEST(VerdictNccl, TheWordsAreThoseOfTheVersion) {
  // Two levels of one Broadcom Gen5 switch: NCCL joins them from 2.20 on. Before 2.12 only the tree
  // counts.
  const std::string device =
      R"("kind": "switch", "model": "pex89144", "link": "gen5x16", "acs": [])";
  const std::string devices = fmt::format(
      R"({{"name": "sw0", "under": "hb0", {0}}}, {{"name": "sw1", "under": "sw0", {0}}},
      {{"name": "gpu0", "kind": "gpu", "model": "h100-sxm5", "under": "sw1", "link": "gen5x16", "acs": []}},
      {{"name": "gpu1", "kind": "gpu", "model": "h100-sxm5", "under": "hb0", "link": "gen5x16"}},
      {{"name": "gpu2", "kind": "gpu", "model": "h100-sxm5", "under": "hb1", "link": "gen5x16"}},
      {{"name": "nic0", "kind": "nic", "model": "connectx-7", "under": "sw0", "link": "gen5x16", "acs": []}})",
      device);
  const HostText host{
      .cpu = "sapphire-rapids",
      .devices = devices,
      .more =
          R"(, "nvlinks": [{"from": "gpu0", "to": "gpu1", "count": 4}, {"from": "gpu1", "to": "gpu2", "count": 4}])"};
  for (const char* version : {"2.18.6", "2.28.9", "2.11.4"}) {
    const gdr::Verdict verdict = judge(host, {{"nccl_version", version}});
    EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").nccl_distance, "PXB") << version;
    EXPECT_EQ(pair(verdict, "h0/gpu2", "h0/nic0").nccl_distance, "SYS") << version;
    EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/gpu1").nccl_distance, "NVL") << version;
    EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/gpu2").nccl_distance,
              std::string(version) == "2.11.4" ? "SYS" : "NVB")
        << version;
  }
}

TEST(VerdictNccl, TheLevelIsNotBlamedForWhatDriversSwitchOff) {
  const gdr::Verdict verdict = judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0")},
                                     {{"h0/gpu0.gdr", "false"}, {"nccl_net_gdr_level", "PIX"}});
  EXPECT_TRUE(fires(verdict, "gdr-off"));
  EXPECT_FALSE(fires(verdict, "gdr-level-too-low"));
}

TEST(VerdictNccl, ALevelThatNcclDoesNotUnderstand) {
  const gdr::Verdict verdict = judge(HostText{.cpu = "epyc-genoa", .devices = apart("hb0")},
                                     {{"nccl_net_gdr_level", "FAR"}});
  EXPECT_EQ(
      finding(verdict, "gdr-level-too-low").message,
      "NCCL rates this route PHB and with NCCL_NET_GDR_LEVEL=FAR, which it does not understand "
      "and treats as PXB, stages "
      "through host memory instead of using GPUDirect RDMA.");
}

TEST(VerdictNccl, ARelayGpuKeepsGpuDirect) {
  // gpu1 has no NIC near it; NCCL goes over NVLink and gpu0's NIC (PXN).
  const HostText host{
      .cpu = "epyc-genoa",
      .devices = one_switch() +
                 R"(, {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb1"})",
      .more = R"(, "nvlinks": [{"from": "gpu0", "to": "gpu1", "count": 12}])"};
  EXPECT_EQ(pair(judge(host), "h0/gpu1", "h0/nic0").nccl_distance, "SYS");
  EXPECT_FALSE(fires(judge(host), "gdr-level-too-low"));
  EXPECT_TRUE(fires(judge(host, {{"nccl_version", "2.11.4"}}), "gdr-level-too-low"))
      << "before PXN";
}

TEST(VerdictNccl, GenerationSixCameWithTwoEleven) {
  const HostText host{.cpu = "epyc-turin", .devices = one_switch()};
  const std::vector<gdr::Setting> gen6{{"h0/nic0.link", "gen6x8"}, {"nccl_version", "2.10.3"}};
  const gdr::Finding f = finding(judge(host, gen6), "gen6-unknown-to-nccl");
  EXPECT_EQ(f.severity, Severity::note);
  EXPECT_EQ(f.where, "h0/nic0");
  EXPECT_EQ(f.message,
            "NCCL 2.10.3 does not know 64 GT/s, which came with 2.11.4, and takes the link for one "
            "of 8 GT/s.");
  EXPECT_FALSE(fires(judge(host, {{"h0/nic0.link", "gen6x8"}, {"nccl_version", "2.11.4"}}),
                     "gen6-unknown-to-nccl"));
  EXPECT_FALSE(fires(judge(host, {{"h0/nic0.link", "gen5x8"}, {"nccl_version", "2.10.3"}}),
                     "gen6-unknown-to-nccl"));
  EXPECT_FALSE(fires(judge(host, {{"h0/nic0.link", "gen6x8"}}), "gen6-unknown-to-nccl"))
      << "the version is not stated";
}

TEST(VerdictNccl, GraceHopperCountsAsNearFromTwoTwentySeven) {
  const HostText host{
      .cpu = "grace",
      .devices = apart("hb0", "gh200", "connectx-7"),
      .more =
          R"(, "nvlinks": [{"from": "gpu0", "to": "numa0", "count": 10, "model": "nvlink-c2c"}])"};
  EXPECT_TRUE(fires(judge(host, {{"nccl_version", "2.25.1"}}), "gdr-level-too-low"));
  EXPECT_FALSE(fires(judge(host, {{"nccl_version", "2.27.3"}}), "gdr-level-too-low"));
}

TEST(VerdictNccl, NvlinkToAPower9IsNoC2c) {
  const HostText host{
      .cpu = "power9",
      .devices = apart("hb0", "v100-sxm2-16gb", "connectx-6-hdr"),
      .more = R"(, "nvlinks": [{"from": "gpu0", "to": "numa0", "count": 3, "model": "nvlink2"}])"};
  EXPECT_EQ(pair(judge(host), "h0/gpu0", "h0/nic0").nccl_distance, "PHB");
  EXPECT_EQ(finding(judge(host), "gdr-level-too-low").remedy.find("2.27"), std::string::npos);
}

TEST(VerdictSharing, PairsInUseThatShareAnUplink) {
  std::string devices =
      R"({"name": "sw0", "kind": "switch", "model": "pex88096", "under": "hb0", "link": "gen4x16", "acs": []})";
  for (int i = 0; i < 2; ++i)
    devices += fmt::format(
        R"(, {{"name": "sw{1}", "kind": "switch", "model": "pex88096", "under": "sw0", "link": "gen4x16", "acs": []}},
      {{"name": "gpu{0}", "kind": "gpu", "model": "a100-pcie-40gb", "under": "sw{1}", "link": "gen4x16", "acs": []}},
      {{"name": "nic{0}", "kind": "nic", "model": "connectx-6-hdr", "under": "sw{1}", "link": "gen4x16", "acs": []}})",
        i, i + 1);
  EXPECT_FALSE(fires(judge(HostText{.devices = devices}), "uplink-shared"));
  const gdr::Verdict redirected = judge(HostText{.devices = devices}, {{"acs", "on"}});
  const gdr::Finding f = finding(redirected, "uplink-shared");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_EQ(f.where, "h0/sw0");
  EXPECT_EQ(f.message,
            "2 GPU-NIC pairs in use share this switch's gen4x16 uplink of 27.2 GB/s; together they "
            "could carry 50.0 GB/s.");
}

TEST(VerdictBandwidth, WritesAreBoundByTheLinksPayload) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()});
  // 16 GT/s x 16 lanes x 128/130 / 8 bit, less 5.5 % for DLLPs; 256 B of payload in TLPs of 256 +
  // 16 + 8 B
  const double expected = 16e9 * 16 * 128 / 130 / 8 * (1 - 0.055) * 256 / (256 + 16 + 8);
  const double actual = pair(verdict, "h0/gpu0", "h0/nic0").bandwidth.write->bytes_per_second;
  EXPECT_NEAR(actual / expected, 1, 1e-9)
      << fmt::format("expected {} B/s, actual {} B/s", expected, actual);
}

TEST(VerdictBandwidth, WritesInStrictOrderAreBoundByTheCpu) {
  const HostText host{.cpu = "emerald-rapids", .devices = apart("hb0", "h100-pcie", "connectx-7")};
  EXPECT_DOUBLE_EQ(pair(judge(host, {{"h0/nic0.relaxed_ordering", "false"}, {"link", "gen5x16"}}),
                        "h0/gpu0", "h0/nic0")
                       .bandwidth.write->gigabytes_per_second(),
                   16);
  EXPECT_DOUBLE_EQ(pair(judge(host, {{"h0/nic0.relaxed_ordering", "true"}, {"link", "gen5x16"}}),
                        "h0/gpu0", "h0/nic0")
                       .bandwidth.write->gigabytes_per_second(),
                   42);
}

// Without stated links and a named processor the slot is not known.
TEST(VerdictLinks, ASlotThatNothingTellsOfIsNotTooNarrow) {
  HostText host;
  host.cpu = "generic";
  host.devices =
      R"({"name": "gpu0", "kind": "gpu", "model": "h100-pcie", "under": "hb0"}, {"name": "nic0", "kind": "nic", "model": "connectx-7", "under": "hb0"})";
  EXPECT_FALSE(fires(judge(host), "nic-wider-than-slot"));
  EXPECT_TRUE(fires(judge(host, {{"h0/nic0.link", "gen4x16"}}), "nic-wider-than-slot"))
      << "400 Gb/s in a slot of 27 GB/s";
}

}  // namespace
