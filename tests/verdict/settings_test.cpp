#include <gtest/gtest.h>

#include "tests/support/verdict_support.hpp"

// What settings and drivers decide: ACS, IOMMU, software, GPU class.

using gdr::KernelP2pdma;
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

gdr::PairAnswer answer(const gdr::Verdict& verdict) {
  return pair(verdict, "h0/gpu0", "h0/nic0").answer;
}

TEST(VerdictAcs, ARedirectingPortIsNamedWithItsBit) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()}, {{"h0/nic0.acs", "SV+RR"}});
  const gdr::Pair& p = pair(verdict, "h0/gpu0", "h0/nic0");
  EXPECT_EQ(p.redirected, true);
  EXPECT_EQ(p.answer, PairAnswer::works);
  EXPECT_EQ(p.kernel_p2pdma, KernelP2pdma::through_host_bridge);
  const gdr::Finding f = finding(verdict, "acs-redirect");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_EQ(f.where, "h0/sw0 downstream port of h0/nic0, bit RR");
  EXPECT_EQ(f.message,
            "ACS at the port sends peer traffic up to the root port and back instead of across the "
            "switch: it takes the uplink "
            "both ways, whose 27.2 GB/s all traffic of the switch then shares.");
  EXPECT_EQ(f.remedy,
            "Clear the bits: setpci -s PORT ECAP_ACS+0x6.w=0 as root after each boot, or the "
            "kernel parameter "
            "pci=disable_acs_redir=PORT.");
}

TEST(VerdictAcs, SourceValidationAloneIsHarmless) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()}, {{"acs", "SV"}});
  EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").redirected, false);
  EXPECT_TRUE(verdict.findings.empty());
}

TEST(VerdictAcs, EachBitThatRedirectsCountsOnItsSide) {
  for (const char* bit : {"RR", "EC"})
    EXPECT_EQ(
        pair(judge(HostText{.devices = one_switch()}, {{"h0/nic0.acs", bit}}), "h0/gpu0", "h0/nic0")
            .redirected,
        true)
        << bit;
  EXPECT_EQ(
      pair(judge(HostText{.devices = one_switch()}, {{"h0/gpu0.acs", "CR"}}), "h0/gpu0", "h0/nic0")
          .redirected,
      true);
  // RR of the GPU's port redirects what the GPU sends, not what the NIC sends; the kernel counts it
  // anyway.
  const gdr::Verdict gpu_side = judge(HostText{.devices = one_switch()}, {{"h0/gpu0.acs", "RR"}});
  EXPECT_EQ(pair(gpu_side, "h0/gpu0", "h0/nic0").redirected, false);
  EXPECT_EQ(pair(gpu_side, "h0/gpu0", "h0/nic0").kernel_p2pdma, KernelP2pdma::through_host_bridge);
  EXPECT_EQ(finding(gpu_side, "acs-redirect").severity, Severity::note);
}

TEST(VerdictAcs, RedirectIsAnErrorWhereTheUplinkIsSlow) {
  const HostText host{.cpu = "broadwell-ep", .devices = one_switch()};
  EXPECT_EQ(answer(judge(host, {{"acs", "on"}})), PairAnswer::works)
      << "nothing goes from one root port to another";
  const gdr::Verdict verdict = judge(host, {{"acs", "on"}, {"h0/sw0.link", "gen3x8"}});
  EXPECT_EQ(answer(verdict), PairAnswer::slow);
  EXPECT_EQ(finding(verdict, "acs-redirect").severity, Severity::error);
  EXPECT_EQ(finding(verdict, "acs-redirect").where,
            "h0/sw0 downstream ports of h0/nic0, h0/gpu0, bits RR+CR");
}

TEST(VerdictAcs, UnknownBitsAreUnknownWithTheWayToReadThem) {
  const gdr::Verdict unknown =
      judge(HostText{.devices = one_switch("", "", R"("max_payload": "256B")")});
  EXPECT_EQ(answer(unknown), PairAnswer::unknown);
  EXPECT_EQ(pair(unknown, "h0/gpu0", "h0/nic0").redirected, std::nullopt);
  EXPECT_EQ(pair(unknown, "h0/gpu0", "h0/nic0").kernel_p2pdma, KernelP2pdma::unknown);
  const gdr::Finding f = finding(unknown, "acs-unknown");
  EXPECT_EQ(f.severity, Severity::note);
  EXPECT_EQ(f.where, "h0/sw0 downstream ports of h0/nic0, h0/gpu0");
  EXPECT_EQ(f.remedy,
            "Read them as root: lspci -vvv, lines ACSCtl, of the bridges above the devices (RR is "
            "ReqRedir, CR CmpltRedir, EC "
            "EgressCtrl).");
}

TEST(VerdictAcs, DirectTranslatedWithAtsGoesStraight) {
  const std::string vm = R"(, "virtual_machine": true)";
  const auto with = [&](const std::string& ats, const char* bits) {
    return judge(HostText{.devices = one_switch("", ats), .more = vm}, {{"h0/nic0.acs", bits}});
  };
  EXPECT_EQ(pair(with(R"(, "ats": true)", "RR+DT"), "h0/gpu0", "h0/nic0").redirected, false);
  EXPECT_EQ(pair(with(R"(, "ats": true)", "RR"), "h0/gpu0", "h0/nic0").redirected, true);
  EXPECT_NE(finding(with(R"(, "ats": true)", "RR"), "acs-redirect").remedy.find("Set DT"),
            std::string::npos);
  EXPECT_EQ(pair(with(R"(, "ats": false)", "RR+DT"), "h0/gpu0", "h0/nic0").redirected, true);
  EXPECT_EQ(pair(with("", "RR+DT"), "h0/gpu0", "h0/nic0").redirected, std::nullopt);
}

TEST(VerdictIommu, TranslateBlocksWhereTheDriverMapsNothing) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()},
                                     {{"iommu", "translate"}, {"maps_peer_memory", "false"}});
  EXPECT_EQ(answer(verdict), PairAnswer::blocked);
  const gdr::Finding f = finding(verdict, "iommu-translating");
  EXPECT_EQ(f.severity, Severity::error);
  EXPECT_EQ(f.where, "h0/gpu0 with h0/nic0");
  EXPECT_EQ(f.pairs, std::vector<std::size_t>{0});
  EXPECT_EQ(f.remedy,
            "Boot with iommu=pt (passthrough), or switch the IOMMU off in the BIOS or with "
            "intel_iommu=off or amd_iommu=off.");
  for (const char* mode : {"passthrough", "off"})
    EXPECT_EQ(answer(judge(HostText{.devices = one_switch()}, {{"iommu", mode}})),
              PairAnswer::works)
        << mode;
}

/// Some machines with a translating IOMMU are known to work (NVIDIA/nccl issue 2409: 48.9 GB/s) and
/// others not to; the driver decides.
TEST(VerdictIommu, TranslateIsUnknownWhereTheDriverIsNotSaid) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()}, {{"iommu", "translate"}});
  EXPECT_EQ(answer(verdict), PairAnswer::unknown);
  const gdr::Finding f = finding(verdict, "iommu-translating");
  EXPECT_EQ(f.severity, Severity::warning);
  EXPECT_NE(f.message.find("zeros"), std::string::npos);
  EXPECT_NE(f.remedy.find("iommu=pt"), std::string::npos);
  EXPECT_NE(f.remedy.find("\"maps_peer_memory\""), std::string::npos);
  EXPECT_EQ(answer(judge(HostText{.devices = one_switch()},
                         {{"iommu", "translate"}, {"maps_peer_memory", "true"}})),
            PairAnswer::slow);
}

TEST(VerdictIommu, TheSameForAmdGpus) {
  EXPECT_EQ(answer(judge(HostText{.devices = apart("hb0", "mi100")}, {{"iommu", "translate"}})),
            PairAnswer::blocked);
  EXPECT_EQ(answer(judge(HostText{.devices = apart("hb0", "mi100")}, {{"iommu", "passthrough"}})),
            PairAnswer::works);
}

TEST(VerdictIommu, StagingOnAmdWantsFourNodesASocket) {
  const std::string second =
      R"(, {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb1", "link": "gen4x16"})";
  const auto with = [&](const std::string& cpu, const std::string& iommu) {
    return judge(HostText{.cpu = cpu, .devices = one_switch() + second}, {{"iommu", iommu}});
  };
  const gdr::Finding f = finding(with("epyc-milan", "translate"), "staging-limited-by-nps1");
  EXPECT_EQ(f.severity, Severity::note);
  EXPECT_EQ(f.where, "h0");
  EXPECT_FALSE(fires(with("epyc-milan", "off"), "staging-limited-by-nps1")) << "peer-to-peer works";
  EXPECT_FALSE(fires(with("ice-lake-sp", "translate"), "staging-limited-by-nps1"));
  EXPECT_FALSE(
      fires(judge(HostText{.cpu = "epyc-milan", .devices = one_switch()}, {{"iommu", "translate"}}),
            "staging-limited-by-nps1"))
      << "one GPU";
}

TEST(VerdictIommu, DmaBufIsMappedButLeavesTheSwitch) {
  const HostText host{
      .software =
          R"("kernel": "6.8", "cuda": "12.4", "open_kernel_modules": true, "iommu": "translate")",
      .devices = one_switch()};
  const gdr::Verdict verdict = judge(host);
  EXPECT_EQ(answer(verdict), PairAnswer::slow);
  EXPECT_EQ(finding(verdict, "iommu-translating").severity, Severity::error);
}

TEST(VerdictIommu, AFarNicIsNoWayRoundTheIommu) {
  const std::string far =
      R"(, {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "hb1", "link": "gen4x16"},
    {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb1", "link": "gen4x16"},
    {"name": "gpu2", "kind": "gpu", "model": "a100-pcie-40gb", "under": "hb1", "link": "gen4x16"})";
  for (const char* cpu : {"epyc-rome", "sapphire-rapids"}) {
    const HostText host{
        .cpu = cpu,
        .software =
            R"("kernel": "6.8", "cuda": "12.4", "open_kernel_modules": true, "iommu": "translate")",
        .devices = one_switch() + far};
    const gdr::Verdict verdict = judge(host);
    EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic0").answer, PairAnswer::slow);
    EXPECT_EQ(pair(verdict, "h0/gpu0", "h0/nic1").answer, PairAnswer::slow);
    EXPECT_EQ(verdict.pairs[verdict.best[0].pair].to, "h0/nic0") << cpu;
    const gdr::Finding f = finding(verdict, "iommu-translating");
    EXPECT_EQ(f.severity, Severity::error);
    EXPECT_EQ(f.where, "h0: gpu0-gpu2 with nic0, nic1");
    EXPECT_EQ(f.pairs.size(), 6U);
    const gdr::Finding& blocked = *std::find_if(
        verdict.findings.begin(), verdict.findings.end(), [](const gdr::Finding& one) {
          return one.rule == "iommu-translating" && one.severity == Severity::note;
        });
    EXPECT_EQ(blocked.where, "h0: gpu0-gpu2 with each other");
  }
}

TEST(VerdictIommu, ASlowNicGivesWayToAFasterOneAlone) {
  const std::string far =
      R"(, {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "hb1", "link": "gen4x16"})";
  const auto best = [&](const char* cpu, const char* link) {
    const gdr::Verdict verdict =
        judge(HostText{.cpu = cpu, .devices = one_switch() + far}, {{"h0/nic0.link", link}});
    return verdict.pairs[verdict.best[0].pair].to;
  };
  EXPECT_EQ(best("sapphire-rapids", "gen4x8"), "h0/nic0") << "more than half";
  EXPECT_EQ(best("sapphire-rapids", "gen1x1"), "h0/nic1");
  EXPECT_EQ(best("epyc-rome", "gen3x8"), "h0/nic0") << "both are slow";
}

TEST(VerdictIommu, NotSaidIsANote) {
  const gdr::Verdict verdict = judge(HostText{
      .software = R"("nvidia_peermem": true, "maps_peer_memory": false)", .devices = one_switch()});
  EXPECT_EQ(finding(verdict, "iommu-unknown").severity, Severity::note);
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}), "iommu-unknown"));
}

TEST(VerdictSoftware, PeermemMissingBlocksWhereDmaBufCannotHelp) {
  const auto with = [](const std::string& software) {
    return judge(HostText{.software = R"("iommu": "off", "nvidia_peermem": false)" + software,
                          .devices = one_switch()});
  };
  EXPECT_EQ(answer(with("")), PairAnswer::unknown);
  EXPECT_EQ(finding(with(""), "peermem-missing").severity, Severity::note);

  const gdr::Verdict old_kernel = with(R"(, "kernel": "5.10.0-28-amd64")");
  EXPECT_EQ(answer(old_kernel), PairAnswer::blocked);
  EXPECT_EQ(finding(old_kernel, "peermem-missing").severity, Severity::error);
  EXPECT_EQ(finding(old_kernel, "kernel-too-old").message,
            "Linux 5.10.0-28-amd64 cannot register dma-buf memory for RDMA, which came with 5.12.");
  const gdr::Verdict old_cuda = with(R"(, "cuda": "11.6")");
  EXPECT_EQ(answer(old_cuda), PairAnswer::blocked);
  EXPECT_EQ(finding(old_cuda, "cuda-too-old").message,
            "CUDA 11.6 cannot export GPU memory as dma-buf, which came with 11.7.");
  EXPECT_EQ(answer(with(R"(, "open_kernel_modules": false)")), PairAnswer::blocked);

  const gdr::Verdict dma_buf =
      with(R"(, "kernel": "5.12", "cuda": "11.7", "open_kernel_modules": true)");
  EXPECT_EQ(answer(dma_buf), PairAnswer::works);
  EXPECT_EQ(finding(dma_buf, "peermem-missing").severity, Severity::note);
  EXPECT_FALSE(fires(dma_buf, "kernel-too-old"));
  EXPECT_FALSE(fires(dma_buf, "cuda-too-old"));
}

TEST(VerdictSoftware, AnOldKernelIsANoteWithPeermem) {
  const gdr::Verdict verdict = judge(HostText{.devices = one_switch()}, {{"kernel", "5.4"}});
  EXPECT_EQ(answer(verdict), PairAnswer::works);
  EXPECT_EQ(finding(verdict, "kernel-too-old").severity, Severity::note);
}

TEST(VerdictSoftware, EfaNeedsNoPeermem) {
  const HostText host{.software = R"("kernel": "5.4", "iommu": "off", "nvidia_peermem": false)",
                      .devices = apart("hb0", "a100-pcie-40gb", "efa-v2")};
  EXPECT_EQ(answer(judge(host)), PairAnswer::works);
}

TEST(VerdictSoftware, ALoadedModuleThatOldLibrariesMayNotSee) {
  const std::string software =
      R"("iommu": "off", "nvidia_peermem": true, "nccl_version": "2.19.3", "kernel": )";
  EXPECT_TRUE(fires(judge(HostText{.software = software + R"("6.8")", .devices = one_switch()}),
                    "peermem-not-seen"));
  EXPECT_FALSE(fires(judge(HostText{.software = software + R"("5.15")", .devices = one_switch()}),
                     "peermem-not-seen"));
}

TEST(VerdictDevice, GeforceIsBlockedWhateverIsLoaded) {
  const gdr::Verdict verdict = judge(HostText{.devices = apart("hb0", "rtx-4090")});
  EXPECT_EQ(answer(verdict), PairAnswer::blocked);
  EXPECT_EQ(finding(verdict, "gpu-class-unsupported").severity, Severity::error);
  EXPECT_FALSE(fires(verdict, "peermem-missing"));
  EXPECT_FALSE(
      fires(judge(HostText{.devices = apart("hb0", "rtx-6000-ada")}), "gpu-class-unsupported"));
}

TEST(VerdictDevice, AGpuThatIsNotNamedIsUnknownUnlessItsDriverSpeaks) {
  const std::string nameless =
      R"({"name": "gpu0", "kind": "gpu", "under": "hb0"%}, {"name": "nic0", "kind": "nic", "model": "connectx-6-hdr", "under": "hb0"})";
  const auto with = [&](const std::string& more) {
    return judge(HostText{.devices = std::string(nameless).replace(nameless.find('%'), 1, more)});
  };
  EXPECT_TRUE(fires(with(""), "gpu-class-unknown"));
  EXPECT_EQ(answer(with("")), PairAnswer::unknown);
  EXPECT_FALSE(fires(with(R"(, "gdr": true)"), "gpu-class-unknown"));
}

TEST(VerdictDevice, DriversThatSayNoBlock) {
  for (const char* key : {"h0/gpu0.gdr", "h0/nic0.gdr"}) {
    const gdr::Verdict verdict = judge(HostText{.devices = one_switch()}, {{key, "false"}});
    EXPECT_EQ(answer(verdict), PairAnswer::blocked) << key;
    EXPECT_EQ(finding(verdict, "gdr-off").severity, Severity::error) << key;
    EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}, {{key, "true"}}), "gdr-off"))
        << key;
  }
}

TEST(VerdictDevice, ANicWithoutRdmaIsNoCandidateWhereOthersAre) {
  const std::string plain =
      R"(, {"name": "nic1", "kind": "nic", "model": "generic-ethernet", "under": "sw0", "link": "gen3x8", "acs": []})";
  const gdr::Verdict both = judge(HostText{.devices = one_switch() + plain});
  EXPECT_EQ(verdict_test::pair(both, "h0/gpu0", "h0/nic1").answer, PairAnswer::blocked);
  EXPECT_EQ(finding(both, "nic-without-rdma").severity, Severity::note);
  const gdr::Verdict alone =
      judge(HostText{.devices = apart("hb0", "a100-pcie-40gb", "generic-ethernet")});
  EXPECT_EQ(finding(alone, "nic-without-rdma").severity, Severity::error);
}

TEST(VerdictFinding, APairsReasonIsItsOwnFinding) {
  // Both hosts translate; on the second one dma-buf does not map the addresses.
  const auto host = [](const std::string& name, const std::string& software) {
    return fmt::format(R"({{"name": "{}", "software": {{"iommu": "translate", {}}},
      "sockets": [{{"name": "cpu0", "model": "epyc-milan"}}],
      "numa_nodes": [{{"name": "numa0", "socket": "cpu0"}}],
      "devices": [{{"name": "hb0", "kind": "host-bridge", "under": "numa0"}}, {}]}})",
                       name, software, one_switch());
  };
  const gdr::Verdict verdict = judge(
      fmt::format(R"({{"format": 1, "name": "t", "hosts": [{}, {}]}})",
                  host("h0", R"("kernel": "6.1", "cuda": "12.2", "open_kernel_modules": true)"),
                  host("h1", R"("nvidia_peermem": true, "maps_peer_memory": false)")));
  const gdr::Pair& slow = verdict_test::pair(verdict, "h0/gpu0", "h0/nic0");
  const gdr::Pair& blocked = verdict_test::pair(verdict, "h1/gpu0", "h1/nic0");
  EXPECT_EQ(slow.answer, PairAnswer::slow);
  EXPECT_EQ(blocked.answer, PairAnswer::blocked);
  ASSERT_NE(finding_of(verdict, slow), nullptr);
  ASSERT_NE(finding_of(verdict, blocked), nullptr);
  EXPECT_EQ(finding_of(verdict, slow)->rule, finding_of(verdict, blocked)->rule);
  EXPECT_TRUE(finding_of(verdict, slow)->message.starts_with("The IOMMU translates each"));
  EXPECT_TRUE(finding_of(verdict, blocked)->message.starts_with("The IOMMU translates, and GPU"));
  EXPECT_EQ(finding_of(verdict, blocked)->host, 1U);
  const gdr::Verdict fine = judge(HostText{.devices = one_switch()});
  EXPECT_EQ(finding_of(fine, verdict_test::pair(fine, "h0/gpu0", "h0/nic0")), nullptr);
}

// With RR and DT the initiator's own translation decides: requests go direct with ATS, through the
// IOMMU without.
TEST(VerdictIommu, AnOpenAtsSettingLeavesTheAnswerOpen) {
  const auto answer = [](const std::vector<gdr::Setting>& ats) {
    std::vector<gdr::Setting> settings{{"iommu", "translate"}, {"maps_peer_memory", "false"}};
    settings.insert(settings.end(), ats.begin(), ats.end());
    const gdr::Verdict verdict =
        judge(HostText{.devices = one_switch("", "", R"("acs": ["RR", "DT"])")}, settings);
    return verdict_test::pair(verdict, "h0/gpu0", "h0/nic0").answer;
  };
  EXPECT_EQ(answer({}), PairAnswer::unknown);
  EXPECT_EQ(answer({{"h0/nic0.ats", "false"}}), PairAnswer::blocked);
  EXPECT_EQ(answer({{"h0/nic0.ats", "true"}}), PairAnswer::works);
}

TEST(VerdictAcs, AFindingNamesTheBitsThatRedirect) {
  const auto where = [](const std::string& bits) {
    return finding(judge(HostText{.devices = one_switch("", "", "\"acs\": [" + bits + "]")}),
                   "acs-redirect")
        .where;
  };
  // EC stops requests, which come from the NIC's port; CR redirects the completions of the GPU's
  // port.
  EXPECT_EQ(where(R"("EC", "SV")"), "h0/sw0 downstream port of h0/nic0, bit EC");
  EXPECT_EQ(where(R"("RR", "CR", "EC")"),
            "h0/sw0 downstream ports of h0/nic0, h0/gpu0, bits RR+CR+EC");
}

TEST(VerdictDevice, ASmallBarIsReportedWithWhatFits) {
  const gdr::Verdict shipped = judge(HostText{.devices = apart("hb0", "t4")});
  EXPECT_EQ(finding(shipped, "bar-too-small").severity, Severity::note);
  EXPECT_EQ(finding(shipped, "bar-too-small").message,
            "The BAR maps 256MiB of 16GiB of memory, so at most about 224MiB can be registered at "
            "a time.");
  EXPECT_NE(answer(shipped), PairAnswer::blocked);
  EXPECT_EQ(finding(judge(HostText{.devices = one_switch()}, {{"h0/gpu0.bar_size", "256MiB"}}),
                    "bar-too-small")
                .severity,
            Severity::warning);
  EXPECT_EQ(answer(judge(HostText{.devices = one_switch()}, {{"h0/gpu0.bar_size", "32MiB"}})),
            PairAnswer::blocked);
  EXPECT_FALSE(fires(judge(HostText{.devices = one_switch()}), "bar-too-small"));
}

TEST(VerdictDevice, AnAmdGpuNeedsItsWholeBar) {
  EXPECT_EQ(
      answer(judge(HostText{.devices = apart("hb0", "mi100")}, {{"h0/gpu0.bar_size", "256MiB"}})),
      PairAnswer::blocked);
}

}  // namespace
