#include "sim/engine/engine.hpp"

#include <fmt/format.h>

#include "sim/engine/steady.hpp"
#include "tests/support/simulation.hpp"

// The engine compared with arithmetic, on scenarios written by hand.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

StageSpec stage(std::vector<std::size_t> resources, Bytes granule, Duration latency = {}) {
  StageSpec spec;
  spec.resources = std::move(resources);
  spec.granule = granule;
  spec.latency = latency;
  return spec;
}

FlowSpec flow(std::vector<StageSpec> stages, Bytes message, std::uint64_t messages = 1) {
  FlowSpec spec;
  spec.completion_stage = stages.size() - 1;
  spec.stages = std::move(stages);
  spec.message = message;
  spec.messages = messages;
  return spec;
}

// 64 B over a 32 GB/s link 150 ns long: 2 + 150 ns.
TEST(Engine, OneGranule) {
  const Outcome o =
      simulator().run({{{.units_per_second = 32e9}}, {flow({stage({0}, 4096_B, 150_ns)}, 64_B)}});
  expect_close("64 B, ns", 152, o.flows[0].first_arrival.ns(), 1e-6);
}

// A pipeline: sum of latencies, the first piece through the faster stages, all pieces through the
// slowest. 16 pieces of 4096 B over 40, 10 and 20 GB/s: 102.4 + 16 x 409.6 + 204.8 ns and 3 x 100
// ns.
TEST(Engine, PipelineOfGranules) {
  const Scenario s{
      {{.units_per_second = 40e9}, {.units_per_second = 10e9}, {.units_per_second = 20e9}},
      {flow({stage({0}, 4096_B, 100_ns), stage({1}, 4096_B, 100_ns), stage({2}, 4096_B, 100_ns)},
            64_KiB)}};
  expect_close("pipeline, ns", 102.4 + 16 * 409.6 + 204.8 + 300,
               simulator().run(s).flows[0].first_arrival.ns(), 1e-5);
  // Pieces twice as large: filling the pipeline costs twice as much, the rest is the same.
  Scenario coarse = s;
  for (StageSpec& spec : coarse.flows[0].stages) spec.granule = 8192_B;
  expect_close("8 KiB pieces, ns", 204.8 + 8 * 819.2 + 409.6 + 300,
               simulator().run(coarse).flows[0].first_arrival.ns(), 1e-5);
  // With the second stage at 40 GB/s the third is the slowest.
  Scenario faster = s;
  faster.resources[1].units_per_second = 40e9;
  expect_close("faster middle, ns", 102.4 + 102.4 + 16 * 204.8 + 300,
               simulator().run(faster).flows[0].first_arrival.ns(), 1e-5);
}

// Store and forward would take three times the message's time; cut-through takes little more than
// one.
TEST(Engine, LatencyIsNotOccupancy) {
  const Scenario s{
      {{.units_per_second = 25e9}, {.units_per_second = 25e9}, {.units_per_second = 25e9}},
      {flow({stage({0}, 4096_B, 1_us), stage({1}, 4096_B, 1_us), stage({2}, 4096_B, 1_us)},
            1_MiB)}};
  const double alone = 1048576 / 25e9 * 1e6;
  expect_close("1 MiB, us", alone + 2 * 4096 / 25e9 * 1e6 + 3,
               simulator().run(s).flows[0].first_arrival.us(), 1e-3);
}

// A window of 8 KiB over a loop of 1 us and 163.84 ns for each piece: two pieces of 4 KiB per loop.
TEST(Engine, WindowOverALoop) {
  Scenario s{{{.units_per_second = 25e9}}, {flow({stage({0}, 4096_B, 1_us)}, 4096_B, 0)}};
  s.flows[0].windows.push_back({.limit = 8192_B});
  // The second piece waits for the first to be sent, the third for the first to arrive: two per
  // 1163.84 ns.
  expect_close("window of two, GB/s", 2 * 4096 / 1163.84,
               simulator().run(s).flows[0].rate.gigabytes_per_second(), 1e-3);
  s.flows[0].windows[0].limit = 16384_B;
  expect_close("window of four, GB/s", 4 * 4096 / 1163.84,
               simulator().run(s).flows[0].rate.gigabytes_per_second(), 1e-3);
  s.flows[0].windows[0].limit = 1_MiB;
  expect_close("window that does not bind, GB/s", 25,
               simulator().run(s).flows[0].rate.gigabytes_per_second(), 1e-3);
}

// Two equal flows on one link get half of it each, and with one link per flow all of it. A model
// without sharing fails here.
TEST(Engine, FlowsShareALink) {
  const FlowSpec both = flow({stage({0}, 4096_B)}, 1_MiB);
  const Outcome shared = simulator().run({{{.units_per_second = 20e9}}, {both, both}});
  for (const FlowOutcome& o : shared.flows)
    expect_close("shared, GB/s", 10, o.rate.gigabytes_per_second(), 1e-2);
  FlowSpec other = both;
  other.stages[0].resources = {1};
  const Outcome apart =
      simulator().run({{{.units_per_second = 20e9}, {.units_per_second = 20e9}}, {both, other}});
  for (const FlowOutcome& o : apart.flows)
    expect_close("a link each, GB/s", 20, o.rate.gigabytes_per_second(), 1e-2);
}

// The second flow starts when the first is half done: 0.5 ms alone, then both share until the first
// ends at 1.5 ms, then the second has the link to itself until 2 ms.
TEST(Engine, LateFlow) {
  FlowSpec first = flow({stage({0}, 4096_B)}, Bytes{10'000'000});
  FlowSpec second = first;
  second.start = {0.5e-3};
  for (const bool extrapolate : {true, false}) {
    const Outcome o = simulator().run({{{.units_per_second = 10e9}}, {first, second}, extrapolate});
    expect_close("first ends, ms", 1.5, o.flows[0].finish.us() / 1e3, 5e-3);
    expect_close("second ends, ms", 2.0, o.flows[1].finish.us() / 1e3, 5e-3);
    EXPECT_EQ(o.extrapolated > 0, extrapolate);
  }
}

// Extrapolation compared with the full run: the same end with far fewer pieces.
TEST(Engine, ExtrapolationEqualsTheFullRun) {
  Scenario s{
      {{.units_per_second = 27e9}, {.units_per_second = 24e9}, {.units_per_second = 27e9}},
      {flow({stage({0}, 4096_B, 900_ns), stage({1}, 4096_B, 500_ns), stage({2}, 4096_B, 400_ns)},
            256_MiB)}};
  const Outcome quick = simulator().run(s);
  s.extrapolate = false;
  const Outcome full = simulator().run(s);
  expect_close("256 MiB extrapolated against run in full, us", full.flows[0].finish.us(),
               quick.flows[0].finish.us(), 1e-4);
  EXPECT_GT(full.transfers, quick.transfers * 20);
  EXPECT_EQ(full.extrapolated, 0U);
}

// A resource that a stage lists twice is used twice.
TEST(Engine, AResourceUsedTwice) {
  const Outcome o =
      simulator().run({{{.units_per_second = 10e9}}, {flow({stage({0, 0}, 1_MiB)}, 1_MiB)}});
  expect_close("a copy inside memory, us", 2 * 1048576 / 10e9 * 1e6, o.flows[0].first_arrival.us(),
               1e-5);
}

// Requests of a read use the opposite direction at the same time: alone they cost nothing...
TEST(Engine, ReadRequestsAgainstData) {
  StageSpec read = stage({0}, 4096_B);
  read.request_resources = {1};
  read.units_per_request = 24;
  read.request_packet = 512_B;
  const Outcome alone = simulator().run(
      {{{.units_per_second = 25e9}, {.units_per_second = 25e9}}, {flow({read}, 4096_B, 0)}});
  expect_close("reads alone, GB/s", 25, alone.flows[0].rate.gigabytes_per_second(), 1e-3);
  // ...beside writes that fill that direction they take 24 bytes per 512 bytes read.
  const Outcome both =
      simulator().run({{{.units_per_second = 25e9}, {.units_per_second = 25e9}},
                       {flow({read}, 16_MiB), flow({stage({1}, 4096_B)}, 16_MiB)}});
  expect_close("writes beside reads, us", 16 * 1048576 * (1 + 24.0 / 512) / 25e9 * 1e6,
               both.flows[1].finish.us(), 1e-2);
}

TEST(Engine, SetUpOccupies) {
  StageSpec spec = stage({0}, 4096_B);
  spec.setup = 100_ns;
  const Outcome o = simulator().run({{{.units_per_second = 40.96e9}}, {flow({spec}, 4096_B, 0)}});
  expect_close("100 ns and 100 ns per piece, GB/s", 4096 / 200.0,
               o.flows[0].rate.gigabytes_per_second(), 1e-3);
}

// Two blocks that agree are not enough; three are.
TEST(SteadyRate, NeedsThreeBlocksThatAgree) {
  SteadyRate rate(100, 1e-3);
  rate.add(0, 0);
  rate.add(1, 100);
  rate.add(2, 200);
  EXPECT_FALSE(rate.steady());
  rate.add(3, 300);
  EXPECT_TRUE(rate.steady());
  EXPECT_DOUBLE_EQ(rate.rate(), 100);
  SteadyRate changing(100, 1e-3);
  for (int i = 0; i < 4; ++i) changing.add(i * (1 + 0.1 * i), static_cast<std::uint64_t>(i) * 100);
  EXPECT_FALSE(changing.steady());
}

// Arrivals that never settle still end, with their average.
TEST(SteadyRate, GivesUpOnAPatternThatDoesNotSettle) {
  SteadyRate rate(100, 1e-3);
  double t = 0;
  int blocks = 0;
  while (!rate.steady() && blocks < 1000) {
    t += blocks % 3 == 0 ? 2.0 : 0.5;
    rate.add(t, static_cast<std::uint64_t>(++blocks) * 100);
  }
  EXPECT_LT(blocks, 200);
  expect_close("average of an uneven stream", 100, rate.rate(), 0.05);
}

}  // namespace
}  // namespace gdr::sim
