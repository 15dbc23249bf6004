#include <fmt/format.h>

#include "src/common/error.hpp"
#include "tests/support/simulation.hpp"

// The model of each path compared with arithmetic and with published figures of the DGX A100.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

const std::string dgx = "topologies/clusters/two-dgx-a100.json";

double gbps(const Prediction& p) { return p.bandwidth.gigabytes_per_second(); }

// The read window: with read requests of 128 B the 128 tags of a 64 KiB window at 512 B ask for 16
// KiB. The round trip follows from the components: NIC 65, two switches 105 each, GPU 65 one way;
// 300 in the GPU: 2 x 340 + 300 = 980 ns. 16384 / 980 ns.
TEST(Paths, ReadWindow) {
  const Lab lab(dgx, {"h0/nic0.max_read_request=128B"});
  const Prediction p = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB));
  expect_close("gdr with 128 B read requests, GB/s", 16384 / 980.0, gbps(p), 1e-2);
  EXPECT_TRUE(is(p.bottleneck, LimitKind::read_window));
}

// Posted-write credits: the GPU's port gives back 16 KiB of credit after twice the crossing of both
// ports.
TEST(Paths, PostedCredits) {
  const Lab lab(two_switch_host(), {});
  const auto route = lab.graph.local_route(lab.graph.device(find_device(lab.topology, "gpu0")),
                                           lab.graph.device(find_device(lab.topology, "gpu1")));
  const auto bound = lab.hardware.credit_bound(*route);
  ASSERT_TRUE(bound.has_value());
  const double into_switch =
      1e9 * models().pci_switch("pex88096").posted_credit.value.as_double() / (2 * (65 + 52.5));
  const double into_gpu =
      1e9 * models().gpu("a100-sxm4-80gb").posted_credit.value.as_double() / (2 * (52.5 + 65));
  expect_close("credits, GB/s", std::min(into_switch, into_gpu) / 1e9,
               bound->gigabytes_per_second(), 1e-6);
}

TEST(Paths, TwoFlowsShareAnUplink) {
  const Lab lab(two_switch_host(), {});
  const auto run = [&](const std::vector<std::pair<const char*, const char*>>& pairs) {
    std::vector<TimedTransfer> flows;
    for (const auto& [from, to] : pairs)
      flows.push_back({lab.transfer(from, to, PathKind::p2p, 1_GiB), {}});
    double sum = 0;
    for (const Prediction& p : predict_together(simulator(), lab.hardware, flows, {}))
      sum += gbps(p);
    return sum;
  };
  const double one = run({{"gpu0", "gpu2"}});
  // 23 GB/s of payload to one root port, as the CPU's model says; the links could do 27.2.
  expect_close("one flow between switches, GB/s", 23, one, 1e-2);
  // Two flows over the same uplink could have 27.223 GB/s of payload together, but towards one root
  // port only 23.
  expect_close("two flows, one uplink, GB/s", 23, run({{"gpu0", "gpu2"}, {"gpu1", "gpu3"}}), 1e-2);
  // Flows inside different switches share nothing.
  expect_close("two flows, own switches, GB/s", 2 * 27.223,
               run({{"gpu0", "gpu1"}, {"gpu2", "gpu3"}}), 1e-2);
}

// ACS redirect sends peer traffic up the switch's uplink and down again: a lone flow keeps its rate
// (each direction carries it once); two opposite flows share each direction, and so does a flow
// beside traffic to host memory.
TEST(Paths, AcsRedirect) {
  const Lab direct(two_switch_host(), {});
  const Lab redirected(two_switch_host(), {"acs=on"});
  const auto one = [](const Lab& lab, bool both) {
    return gbps(lab.run(lab.transfer("gpu0", "gpu1", PathKind::p2p, 64_MiB), {128, 1, both}));
  };
  expect_close("direct, one way, GB/s", 27.223, one(direct, false), 5e-3);
  expect_close("direct, both ways, GB/s", 2 * 27.223, one(direct, true), 1e-2);
  expect_close("redirected, one way, GB/s", 27.223, one(redirected, false), 1e-2);
  expect_close("redirected, both ways, GB/s", 27.223, one(redirected, true), 2e-2);
  // gpu1 copies to host memory over the same uplink: together they get one direction of it.
  const std::vector<TimedTransfer> beside{
      {redirected.transfer("gpu0", "gpu1", PathKind::p2p, 1_GiB), {}},
      {redirected.transfer("gpu1", "gpu0", PathKind::staged, 1_GiB), {}}};
  const auto together = predict_together(simulator(), redirected.hardware, beside, {});
  EXPECT_LT(gbps(together[0]), 0.8 * one(redirected, false));
}

TEST(Paths, PassesThroughHostMemory) {
  const Lab lab(dgx);
  const Prediction staged = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 1_MiB));
  const Prediction gdr = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_MiB));
  const Prediction tcp = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::tcp, 1_MiB));
  EXPECT_EQ(staged.host_memory_bytes_per_byte, 4);  // a write and a read on each side
  EXPECT_EQ(gdr.host_memory_bytes_per_byte, 0);
  EXPECT_EQ(tcp.host_memory_bytes_per_byte,
            8);  // and the sockets' copy, a read and a write on each side
  EXPECT_EQ(staged.stages.size(), 5U);
  EXPECT_EQ(gdr.stages.size(), 3U);
  for (const Stage& stage : staged.stages) EXPECT_EQ(stage.bytes, 1_MiB);
}

TEST(Paths, ExtrapolationEqualsTheFullRun) {
  const Lab lab(dgx);
  for (const PathKind path : {PathKind::gdr, PathKind::staged, PathKind::tcp}) {
    Scenario s = lab.scenario(lab.transfer("h0/gpu0", "h1/gpu0", path, 64_MiB), one_message);
    const Outcome quick = simulator().run(s);
    s.extrapolate = false;
    const Outcome full = simulator().run(s);
    expect_close(fmt::format("{} 64 MiB against the full run, us", to_string(path)),
                 full.flows[0].finish.us(), quick.flows[0].finish.us(), 5e-3);
    EXPECT_LT(quick.transfers, full.transfers / 2);
  }
}

// On a slow route a piece takes long, so that a jump by less than whole pieces would show.
TEST(Paths, ExtrapolationIsExactToTheGranule) {
  const Lab lab("topologies/clusters/two-sandybridge-two-sockets.json");
  Scenario s = lab.scenario(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 3_MiB), one_message);
  const Outcome quick = simulator().run(s);
  s.extrapolate = false;
  expect_close("3 MiB across QPI against the full run, us", simulator().run(s).flows[0].finish.us(),
               quick.flows[0].finish.us(), 1e-5);
}

// What changes the machine or the software changes the result, and in the right direction.
TEST(Paths, SettingsChangeTheResult) {
  const auto staged = [](const std::vector<std::string>& settings) {
    const Lab lab(dgx, settings);
    return lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 64_MiB));
  };
  const double usual = gbps(staged({}));
  EXPECT_LT(gbps(staged({"staging.depth=1"})), 0.8 * usual);
  EXPECT_LT(gbps(staged({"staging.chunk=16KiB", "staging.depth=4"})), 0.7 * usual);
  const auto gdr = [](const std::vector<std::string>& settings) {
    const Lab lab(dgx, settings);
    return gbps(lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB)));
  };
  // Gen4 x8 with 256-byte completions: 14.8874 x 256/276.
  expect_close("gdr over a x8 slot, GB/s", 13.8086, gdr({"h0/nic0.link=gen4x8"}), 1e-2);
  expect_close("gdr at 100 Gb/s, GB/s", 12.5 * 4096 / 4126, gdr({"h0/nic0.port_rate=100Gb/s"}),
               1e-2);
  EXPECT_LT(gdr({"fabric.mtu=256B"}), 0.93 * gdr({}));
}

// With depth 1 the rate is size over completion time.
TEST(Paths, QueueDepthOne) {
  const Lab lab(dgx);
  const Transfer t = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_KiB);
  const Prediction one = lab.run(t, {1, 1, false});
  expect_close("depth 1, GB/s", 65536 / one.completion.seconds / 1e9, gbps(one), 3e-2);
  EXPECT_GT(gbps(lab.run(t, {8, 1, false})), 2 * gbps(one));
}

TEST(Paths, ReadsAskAcrossTheNetwork) {
  const Lab lab(dgx);
  const Prediction write = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B));
  const Prediction read =
      lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B, Operation::read));
  EXPECT_GT(read.latency, write.latency);
}

TEST(Paths, EqualPairsRunOnce) {
  const Lab lab(dgx);
  const std::size_t before = simulator().ran();
  (void)lab.run(lab.transfer("h0/gpu0", "h1/gpu1", PathKind::gdr, Bytes{12345}));
  const std::size_t after = simulator().ran();
  (void)lab.run(lab.transfer("h0/gpu4", "h1/gpu5", PathKind::gdr, Bytes{12345}));
  EXPECT_EQ(simulator().ran(), after);
  EXPECT_EQ(after, before + 2);
}

// Caps hold whatever else runs: a one-byte flow is all headers and must not make room for the large
// one.
TEST(Paths, ASmallFlowDoesNotRaiseALimit) {
  const Lab lab("topologies/clusters/two-sandybridge-two-sockets.json");
  const Transfer large = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 16_MiB);
  const auto alone = predict_together(simulator(), lab.hardware, {{large, {}}}, {});
  const auto beside = predict_together(
      simulator(), lab.hardware,
      {{large, {}}, {lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_B), {1.0}}}, {});
  expect_close("16 MiB across QPI, GB/s", 0.25, gbps(alone[0]), 1e-2);
  expect_close("the same with a 1 B flow later, GB/s", gbps(alone[0]), gbps(beside[0]), 1e-3);
}

// 12 NVLinks of 25 GB/s at the model's efficiency; PCIe has no part in it.
TEST(Paths, NvlinkBetweenGpus) {
  const Lab lab("topologies/servers/dgx-a100.json");
  const Prediction p = lab.run(lab.transfer("gpu0", "gpu7", PathKind::nvlink, 256_MiB));
  const double efficiency =
      static_cast<double>(models().nvlink("nvlink3").protocol_efficiency_percent.value) / 100;
  expect_close("NVLink 3 x 12, GB/s", 12 * 25 * efficiency, gbps(p), 2e-2);
  EXPECT_EQ(p.pcie_bytes_per_byte, 0);
}

// Grace Hopper: copies between GPU and host memory go over C2C, not over the GPU's PCIe interface.
TEST(Paths, C2cCarriesTheData) {
  const Lab lab("topologies/clusters/two-gh200.json");
  const auto plan = plan_transfer(lab.graph, models(),
                                  lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 1_MiB));
  for (const Hop& hop : plan.stages.front().data) EXPECT_NE(hop.kind, HopKind::pcie);
  EXPECT_EQ(plan.stages.front().data.front().kind, HopKind::c2c);
}

// One message takes one queue pair, however many there are.
TEST(Paths, QueuePairsDoNotSpeedUpOneMessage) {
  const Lab lab(dgx);
  const Transfer t = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B);
  EXPECT_EQ(lab.run(t, {128, 16, false}).latency, lab.run(t, {128, 1, false}).latency);
  EXPECT_GT(gbps(lab.run(t, {128, 16, false})), gbps(lab.run(t, {128, 1, false})) * 0.999);
}

TEST(Paths, ABindingWindowIsNamed) {
  const Lab lab(dgx, {"staging.depth=1"});
  EXPECT_TRUE(is(lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 64_MiB)).bottleneck,
                 WindowKind::staging_buffers));
}

// GPU memory of one host and host memory of another: known stages in a new order.
TEST(Paths, GpuMemoryAndFarHostMemory) {
  const Lab lab(dgx);
  const auto between = [&](const std::string& from, const std::string& to) {
    Transfer t;
    set_ends(lab.topology, find_end(lab.topology, from), find_end(lab.topology, to), t);
    t.size = 64_MiB;
    return t;
  };
  const Transfer out = between("h0/gpu0", "h1/numa3");
  const TransferPlan plan = plan_transfer(lab.graph, models(), out);
  ASSERT_EQ(plan.stages.size(), 3U);
  EXPECT_EQ(plan.stages[0].from, lab.graph.device(find_device(lab.topology, "h0/gpu0")));
  EXPECT_EQ(plan.stages[2].to, lab.graph.memory(1, 3));
  EXPECT_EQ(lab.graph.numa_of(*plan.to_nic), 3U) << "a NIC near the memory";
  EXPECT_EQ(host_memory_passes(plan, lab.graph), 1);
  const double gdr = gbps(lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB)));
  for (const Transfer& t : {out, between("h1/numa3", "h0/gpu0")}) {
    const Prediction p = lab.run(t);
    expect_close("as gdr by the port, GB/s", gdr, gbps(p), 0.01);
    EXPECT_TRUE(is(p.bottleneck, ResourceKind::port));
    EXPECT_EQ(p.host_memory_bytes_per_byte, 1);
  }
  Transfer posted = out;
  posted.initiator = Initiator::gpu;
  EXPECT_THROW((void)plan_transfer(lab.graph, models(), posted), InputError);
}

// The four figures that NVIDIA published for DGX A100 with HDR adapters (calibration): within 25 %.
TEST(KnownResults, DgxA100) {
  const Lab lab(dgx);
  expect_close("gdr, large, GB/s", 24,
               gbps(lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB))), 0.25);
  expect_close(
      "gdr, small message, us", 3.4,
      lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 8_B, Operation::send)).latency.us(),
      0.25);
  expect_close("staged, small message, us", 26.6,
               lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::staged, 8_B, Operation::send))
                   .latency.us(),
               0.25);
  for (const auto& [path, expected] :
       {std::pair{PathKind::gdr, 192.0}, std::pair{PathKind::staged, 71.0}}) {
    std::vector<TimedTransfer> flows;
    for (int i = 0; i < 8; ++i)
      flows.push_back({lab.transfer(fmt::format("h0/gpu{}", i), fmt::format("h1/gpu{}", i), path,
                                    1_GiB, Operation::send),
                       {}});
    double sum = 0;
    for (const Prediction& p : predict_together(simulator(), lab.hardware, flows, {}))
      sum += gbps(p);
    expect_close(fmt::format("eight pairs, {}, GB/s", to_string(path)), expected, sum, 0.25);
  }
}

}  // namespace
}  // namespace gdr::sim
