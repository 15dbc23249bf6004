#include <gtest/gtest.h>

#include "src/hardware/hardware.hpp"
#include "tests/support/verdict_support.hpp"

namespace gdr {
namespace {

constexpr DeviceId nic(std::size_t index) { return {0, index}; }

TEST(NicChoice, DevicesWithTheSameBestNicsTakeThemInTurn) {
  const std::vector<RankedNic> both{{nic(0), 1}, {nic(1), 1}, {nic(2), 3}};
  const std::vector<RankedNic> other{{nic(0), 2}, {nic(1), 2}, {nic(2), 1}};
  const auto chosen = take_nics_in_turn({both, both, other, both, {}});
  EXPECT_EQ(chosen,
            (std::vector<std::optional<DeviceId>>{nic(0), nic(1), nic(2), nic(0), std::nullopt}));
}

/// The best NICs of GPUs by the verdict and by the data paths, where both NICs are equally good.
std::vector<std::pair<std::string, std::string>> choices(const Topology& topology) {
  const Graph graph(topology);
  const Hardware hardware(graph, verdict_test::models());
  const Verdict verdict = judge(graph, verdict_test::models());
  std::vector<std::pair<std::string, std::string>> names;
  for (const BestPair& best : verdict.best) {
    const auto near = hardware.nearest_nic(find_device(topology, best.gpu), NicUse::gpudirect);
    const std::string name = near ? label(topology, *near) : "none";
    const Pair& pair = verdict.pairs[best.pair];
    if (verdict_test::pair(verdict, best.gpu, name).answer == pair.answer)
      names.emplace_back(pair.to, name);
  }
  return names;
}

TEST(NicChoice, CheckNamesTheNicThatPredictUses) {
  const auto dgx = choices(load_topology(GDR_PROJECT_DIR "/topologies/servers/dgx-a100.json"));
  ASSERT_EQ(dgx.size(), 8U);
  EXPECT_EQ(dgx[0].first, "h0/nic0");
  EXPECT_EQ(dgx[1].first, "h0/nic1");
  for (const char* server : {"dgx-a100", "dgx-h100", "hgx-b200", "p4d", "p5en", "l40s-4gpu-2nic",
                             "epyc-pex890xx", "mi300x-8gpu"})
    for (const auto& [check, predict] : choices(
             load_topology(fmt::format("{}/topologies/servers/{}.json", GDR_PROJECT_DIR, server))))
      EXPECT_EQ(check, predict) << server;
}

TEST(NicChoice, ABetterAnswerWinsOverATurn) {
  std::string devices = verdict_test::one_switch();
  devices +=
      R"(, {"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "sw0", "link": "gen4x16", "acs": []},
    {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "sw0", "link": "gen4x16", "link_capability": "gen4x16", "acs": []})";
  const auto best = [&](const std::vector<Setting>& settings) {
    const Verdict verdict =
        verdict_test::judge(verdict_test::HostText{.devices = devices}, settings);
    return verdict.pairs[verdict.best[1].pair].to;
  };
  EXPECT_EQ(best({}), "h0/nic1");
  EXPECT_EQ(best({{"h0/nic1.link", "gen1x4"}}), "h0/nic0") << "nic1 is slow";
}

TEST(NicChoice, ABetterAnswerWithoutMoreBandwidthDoesNotReplaceTheNearest) {
  // Both NICs have four lanes; the near one could do more, so that it is slow.
  std::string devices = verdict_test::one_switch("", R"(, "link_capability": "gen4x16")");
  devices +=
      R"(, {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "hb0", "link": "gen4x4", "port_rate": "50Gb/s"})";
  const auto best = [&](const std::string& far_link) {
    const Verdict verdict =
        verdict_test::judge(verdict_test::HostText{.devices = devices},
                            {{"h0/nic0.link", "gen4x4"}, {"h0/nic1.link", far_link}});
    const Pair& near = verdict_test::pair(verdict, "h0/gpu0", "h0/nic0");
    const Pair& far = verdict_test::pair(verdict, "h0/gpu0", "h0/nic1");
    EXPECT_EQ(near.answer, PairAnswer::slow);
    EXPECT_EQ(far.answer, PairAnswer::works);
    EXPECT_EQ(near.bandwidth == far.bandwidth, far_link == "gen4x4");
    return verdict.pairs[verdict.best.front().pair].to;
  };
  EXPECT_EQ(best("gen4x4"), "h0/nic0") << "a tie";
  EXPECT_EQ(best("gen4x8"), "h0/nic1");
}

TEST(NicChoice, ANicWhoseDriverDeniesGpudirectCountsOnlyWhereNoOtherIs) {
  const std::string devices =
      verdict_test::one_switch("", R"(, "gdr": false)") +
      R"(, {"name": "nic1", "kind": "nic", "model": "connectx-6-hdr", "under": "hb0", "link": "gen4x16"})";
  const auto nearest = [&](const std::string& text, NicUse use) {
    const Topology topology = read_topology(
        json::parse(verdict_test::document({.devices = text}), "t.json"), "t.json", ".");
    const Graph graph(topology);
    const Verdict verdict = judge(graph, verdict_test::models());
    const auto nic =
        Hardware(graph, verdict_test::models()).nearest_nic(find_device(topology, "h0/gpu0"), use);
    const std::string& best = verdict.pairs[verdict.best.front().pair].to;
    EXPECT_TRUE(use != NicUse::gpudirect || best == label(topology, *nic)) << best;
    return label(topology, *nic);
  };
  EXPECT_EQ(nearest(devices, NicUse::gpudirect), "h0/nic1");
  EXPECT_EQ(nearest(devices, NicUse::rdma), "h0/nic0");
  EXPECT_EQ(nearest(verdict_test::one_switch("", R"(, "gdr": false)"), NicUse::gpudirect),
            "h0/nic0");
}

}  // namespace
}  // namespace gdr
