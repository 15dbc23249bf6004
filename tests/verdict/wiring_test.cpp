#include <gtest/gtest.h>

#include "tests/support/verdict_support.hpp"

using gdr::KernelP2pdma;
using gdr::PairAnswer;
using gdr::PairRoute;
using gdr::Severity;
using verdict_test::apart;
using verdict_test::finding;
using verdict_test::fires;
using verdict_test::HostText;
using verdict_test::judge;
using verdict_test::one_switch;
using verdict_test::pair;

namespace {

TEST(VerdictWiring, OneSwitchWorksWithoutAnyFinding) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()});
  const gdr::Pair& p = pair(verdict, "h0/gpu0", "h0/nic0");
  EXPECT_EQ(p.distance, "PIX");
  EXPECT_EQ(p.nccl_distance, "PIX");
  EXPECT_EQ(p.route, PairRoute::pci_switch);
  EXPECT_EQ(p.redirected, false);
  EXPECT_EQ(p.kernel_p2pdma, KernelP2pdma::direct);
  EXPECT_EQ(p.answer, PairAnswer::works);
  EXPECT_TRUE(verdict.findings.empty());
}

TEST(VerdictWiring, GpuUnderTheOtherSocketIsAnErrorWithNumbers) {
  const gdr::Verdict verdict = judge(HostText{.devices = apart("hb1")});
  const gdr::Pair& p = pair(verdict, "h0/gpu0", "h0/nic0");
  EXPECT_EQ(p.distance, "SYS");
  EXPECT_EQ(p.route, PairRoute::socket_link);
  EXPECT_EQ(p.answer, PairAnswer::slow);
  const gdr::Finding f = finding(verdict, "crosses-sockets");
  EXPECT_EQ(f.severity, Severity::error);
  EXPECT_EQ(f.where, "h0/gpu0 with h0/nic0");
  EXPECT_EQ(f.message,
            "Peer traffic crosses the xGMI link between two sockets: reads get at most 8.0 GB/s "
            "and writes 12.0 GB/s, less than "
            "half of the "
            "25.0 GB/s that the devices could carry.");
  EXPECT_EQ(f.remedy,
            "Use a pair below one socket, best below one PCIe switch, or move one card to a slot "
            "of the other's socket.");
}

TEST(VerdictWiring, TheOtherSocketIsANoteWhereTheCpuIsFastEnough) {
  const gdr::Verdict verdict = judge(HostText{.cpu = "sapphire-rapids", .devices = apart("hb1")});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
  EXPECT_EQ(finding(verdict, "crosses-sockets").severity, Severity::note);
}

TEST(VerdictWiring, TheOtherSocketIsANoteWhereABetterNicExists) {
  const std::string far =
      R"(, {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "hb1", "link": "gen4x16"})";
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch() + far});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic1").answer, PairAnswer::slow);
  EXPECT_EQ(finding(verdict, "crosses-sockets").severity, Severity::note);
  ASSERT_EQ(verdict.best.size(), 1U);
  EXPECT_EQ(verdict.pairs[verdict.best[0].pair].to, "h0/nic0");
}

TEST(VerdictWiring, ManyFarPairsShareOneNote) {
  std::string devices = one_switch();
  for (int i = 1; i < 5; ++i)
    devices += fmt::format(
        R"(, {{"name": "nic{}", "kind": "nic", "model": "connectx-6-hdr", "under": "hb1", "link": "gen4x16"}})",
        i);
  const gdr::Verdict verdict = judge(HostText{.devices = devices});
  ASSERT_EQ(verdict.findings.size(), 1U);
  EXPECT_EQ(verdict.findings[0].where, "h0: gpu0 with nic1-nic4");
}

TEST(VerdictWiring, BroadwellIsSlowThroughTheRootComplex) {
  // Reports of a GPU and a 100 Gb/s NIC below a Broadwell root complex give 5 to 6 of 12.5 GB/s.
  const gdr::Verdict verdict =
      judge(HostText{.cpu = "broadwell-ep", .devices = apart("hb0", "p100-pcie", "connectx-4")});
  const gdr::Pair& p = pair(verdict, "h0/gpu0", "h0/nic0");
  EXPECT_EQ(p.answer, PairAnswer::slow);
  EXPECT_EQ(p.route, PairRoute::host_bridge);
  EXPECT_DOUBLE_EQ(p.bandwidth.read->gigabytes_per_second(), 5.5);
  EXPECT_EQ(p.kernel_p2pdma, KernelP2pdma::refused);
  EXPECT_EQ(finding(verdict, "through-host-bridge").severity, Severity::error);
  EXPECT_EQ(finding(verdict, "host-bridge-not-listed").severity, Severity::note);
}

TEST(VerdictWiring, SkylakeIsListedAndFastEnough) {
  const gdr::Verdict verdict =
      judge(HostText{.cpu = "skylake-sp", .devices = apart("hb0", "v100-pcie", "connectx-5")});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").kernel_p2pdma, KernelP2pdma::through_host_bridge);
  EXPECT_FALSE(fires(verdict, "host-bridge-not-listed"));
}

TEST(VerdictWiring, HaswellIsAllowedOnlyBelowOneHostBridge) {
  EXPECT_EQ(pair(judge(HostText{.cpu = "haswell-ep", .devices = apart("hb0", "k40", "connect-ib")}),
                 "h0/gpu0", "h0/nic0")
                .kernel_p2pdma,
            KernelP2pdma::through_host_bridge);
  EXPECT_EQ(pair(judge(HostText{.cpu = "haswell-ep", .devices = apart("hb1", "k40", "connect-ib")}),
                 "h0/gpu0", "h0/nic0")
                .kernel_p2pdma,
            KernelP2pdma::refused);
}

TEST(VerdictWiring, AnAmdGpuNeedsTheKernelsList) {
  const gdr::Verdict refused =
      judge(HostText{.cpu = "broadwell-ep", .devices = apart("hb0", "mi50", "connectx-3-pro")});
  EXPECT_EQ(pair(refused, "h0/gpu0", "h0/nic0").answer, PairAnswer::blocked);
  EXPECT_EQ(finding(refused, "host-bridge-not-listed").severity, Severity::error);
  const gdr::Verdict listed = judge(HostText{.cpu = "epyc-rome", .devices = apart("hb0", "mi100")});
  EXPECT_EQ(pair(listed, "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
}

TEST(VerdictWiring, OldIohsDoNotForwardToEachOther) {
  const gdr::Verdict verdict =
      judge(HostText{.cpu = "westmere-5520", .devices = apart("hb1", "k40", "connectx-3-pro")});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::blocked);
  EXPECT_FALSE(pair(verdict, "h0/gpu0", "h0/nic0").bandwidth.read.has_value());
  const gdr::Finding f = finding(verdict, "legacy-ioh");
  EXPECT_EQ(f.severity, Severity::error);
  EXPECT_EQ(f.message,
            "Intel Xeon 5600 (Westmere-EP) with the 5520 I/O hub forwards peer-to-peer traffic "
            "only inside one host bridge.");
  EXPECT_FALSE(fires(
      judge(HostText{.cpu = "westmere-5520", .devices = apart("hb0", "k40", "connectx-3-pro")}),
      "legacy-ioh"));
}

TEST(VerdictWiring, AnOldIohThatIsNotKnownIsUnknown) {
  const gdr::Verdict verdict =
      judge(HostText{.cpu = "westmere-5520", .devices = apart("numa0", "k40", "connectx-3-pro")});
  EXPECT_TRUE(fires(verdict, "legacy-ioh"));
  EXPECT_NE(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::blocked);
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").distance, "PHB/NODE");
}

TEST(VerdictWiring, AnUnknownCpuIsUnknownOnlyWhereTrafficPassesIt) {
  const gdr::Verdict through = judge(HostText{.cpu = "generic", .devices = apart("hb0")});
  EXPECT_EQ(pair(through, "h0/gpu0", "h0/nic0").answer, PairAnswer::unknown);
  EXPECT_EQ(finding(through, "cpu-unknown").severity, Severity::note);
  const gdr::Verdict below = judge(HostText{.cpu = "generic", .devices = one_switch()});
  EXPECT_EQ(pair(below, "h0/gpu0", "h0/nic0").answer, PairAnswer::works);
}

TEST(VerdictWiring, AVirtualMachineHidesWhatMeetsAtTheCpu) {
  const HostText vm{.devices = apart("hb0"), .more = R"(, "virtual_machine": true)"};
  const gdr::Verdict verdict = judge(vm);
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::unknown);
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").kernel_p2pdma, KernelP2pdma::unknown);
  const gdr::Finding f = finding(verdict, "vm-hides-topology");
  EXPECT_EQ(f.severity, Severity::note);
  EXPECT_EQ(f.where, "h0");
  EXPECT_FALSE(
      fires(judge(HostText{.devices = one_switch(), .more = R"(, "virtual_machine": true)"}),
            "vm-hides-topology"));
}

TEST(VerdictWiring, LinksOfVirtualBridgesAreNotBelieved) {
  const std::string bridge =
      R"({"name": "sw0", "kind": "switch", "under": "hb0", "link": "gen1x1", "acs": []},
    {"name": "gpu0", "kind": "gpu", "model": "h100-sxm5", "under": "sw0", "link": "gen5x16", "acs": []},
    {"name": "nic0", "kind": "nic", "model": "connectx-7-200", "under": "sw0", "link": "gen5x16", "acs": []},
    {"name": "nic1", "kind": "nic", "model": "connectx-7-200", "under": "hb1", "link": "gen5x16", "acs": []})";
  const gdr::Verdict guest = judge(HostText{
      .cpu = "sapphire-rapids", .devices = bridge, .more = R"(, "virtual_machine": true)"});
  EXPECT_TRUE(fires(guest, "virtual-link-not-believed"));
  EXPECT_TRUE(fires(guest, "vm-hides-topology"));
  EXPECT_EQ(pair(guest, "h0/gpu0", "h0/nic0").answer, PairAnswer::unknown);
  EXPECT_FALSE(fires(judge(HostText{.cpu = "sapphire-rapids", .devices = bridge}),
                     "virtual-link-not-believed"));
}

TEST(VerdictWiring, NvlinkCarriesGpuPairs) {
  const std::string gpus =
      R"({"name": "gpu0", "kind": "gpu", "model": "a100-sxm4-40gb", "under": "hb0", "link": "gen4x16"},
    {"name": "gpu1", "kind": "gpu", "model": "a100-sxm4-40gb", "under": "hb1", "link": "gen4x16"})";
  const gdr::Verdict verdict = judge(HostText{
      .devices = gpus, .more = R"(, "nvlinks": [{"from": "gpu0", "to": "gpu1", "count": 12}])"});
  const gdr::Pair& p = pair(verdict, "h0/gpu0", "h0/gpu1");
  EXPECT_EQ(p.distance, "NV12");
  EXPECT_EQ(p.nccl_distance, "NVL");
  EXPECT_EQ(p.route, PairRoute::nvlink);
  EXPECT_EQ(p.answer, PairAnswer::works);
  EXPECT_EQ(pair(judge(HostText{.devices = gpus}), "h0/gpu0", "h0/gpu1").answer, PairAnswer::slow);
}

TEST(VerdictWiring, XgmiIsCalledSo) {
  const auto with = [](const std::string& gpu, const std::string& model) {
    const std::string text = fmt::format(
        R"({{"name": "gpu0", "kind": "gpu", "model": "{0}", "under": "hb0", "link": "gen4x16"}},
      {{"name": "gpu1", "kind": "gpu", "model": "{0}", "under": "hb1", "link": "gen4x16"}})",
        gpu);
    return pair(
               judge(HostText{
                   .devices = text,
                   .more = fmt::format(
                       R"(, "nvlinks": [{{"from": "gpu1", "to": "gpu0", "count": 2, "model": "{}"}}])",
                       model)}),
               "h0/gpu0", "h0/gpu1")
        .distance;
  };
  EXPECT_EQ(with("mi100", "xgmi2"), "XGMI2");
  EXPECT_EQ(with("generic", "xgmi3"), "XGMI2");
  EXPECT_EQ(with("a100-sxm4-40gb", "nvlink3"), "NV2");
}

TEST(VerdictWiring, AHostWithoutNicsIsANote) {
  const gdr::Verdict verdict = judge(HostText{
      .devices =
          R"({"name": "gpu0", "kind": "gpu", "model": "a40", "under": "hb0", "link": "gen4x16"})"});
  EXPECT_EQ(finding(verdict, "no-nic").severity, Severity::note);
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}), "no-nic"));
}

TEST(VerdictWiring, EqualHostsSayTheSameUnderTheirNames) {
  std::string text = verdict_test::document(HostText{.devices = apart("hb1")});
  const std::size_t start = text.find("[{\"name\": \"h0\"") + 1;
  const std::size_t end = text.rfind("]}");
  std::string second = text.substr(start, end - start);
  second.replace(second.find("h0"), 2, "h1");
  const gdr::Verdict verdict = judge(text.substr(0, end) + ", " + second + "]}");
  EXPECT_EQ(pair(verdict, "h1/gpu0", "h1/nic0").answer, PairAnswer::slow);
  int errors = 0;
  for (const gdr::Finding& f : verdict.findings)
    if (f.rule == "crosses-sockets") ++errors;
  EXPECT_EQ(errors, 2);
}

}  // namespace
