#include "emu/fabric/link.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;
using namespace gdr::literals;
using gdr::Bandwidth;
using gdr::Bytes;
using gdr::Duration;

const Seed seed{42};

/// Sends `count` frames, one every `step`; returns the number of deliveries of each.
std::vector<std::size_t> deliveries_of(Link& link, std::size_t count, Duration step = 1_us,
                                       bool roce = true) {
  std::vector<std::size_t> numbers;
  const FramePtr frame = shared(roce ? roce_frame({}) : plain_frame(mac(2), mac(1)));
  for (std::size_t i = 0; i < count; ++i)
    numbers.push_back(link.pass(frame, step * static_cast<double>(i)).size());
  return numbers;
}

void expect_near(const char* what, double expected, double actual, double tolerance) {
  const double deviation = (actual - expected) / expected;
  std::printf("%-44s expectation %.9g  actual %.9g  deviation %+.3g\n", what, expected, actual,
              deviation);
  EXPECT_LE(std::abs(deviation), tolerance) << what << " (seed " << seed.value << ")";
}

TEST(FabricLink, APerfectLinkDoesNothing) {
  Link link("h0/nic0.tx", {}, seed);
  const FramePtr frame = shared(roce_frame({}));
  const auto deliveries = link.pass(frame, 5_us);
  ASSERT_EQ(deliveries.size(), 1U);
  EXPECT_EQ(deliveries[0].frame, frame) << "not even copied";
  EXPECT_EQ(deliveries[0].due, 5_us);
}

TEST(FabricLink, DelayIsTheSameForAll) {
  Link link("l", {.delay = 5_us}, seed);
  EXPECT_EQ(link.pass(shared(roce_frame({})), 1_us).at(0).due, 1_us + 5_us);
  EXPECT_EQ(link.pass(shared(roce_frame({})), 2_us).at(0).due, 2_us + 5_us);
}

TEST(FabricLink, RateArithmetic) {
  // 1000 frames of 4170 bytes at once, at 10 Gb/s: each takes 24 bytes more than its size.
  LinkOptions options{.rate = 10_Gbps, .delay = 3_us};
  Link link("l", options, seed);
  const FramePtr frame = shared(plain_frame(mac(2), mac(1), 4170));
  Duration last;
  for (int i = 0; i < 1000; ++i) last = link.pass(frame, Duration{}).at(0).due;
  expect_near("1000 frames of 4170 B at 10 Gb/s, +3 us [s]", 1000 * (4170 + 24) * 8 / 10e9 + 3e-6,
              last.seconds, 1e-12);

  // Short frames are padded to 60 bytes: 14.88 million per second at 10 Gb/s, the figure in every
  // switch's data sheet.
  Link short_frames("l", {.rate = 10_Gbps}, seed);
  const FramePtr tiny = shared(plain_frame(mac(2), mac(1), 20));
  for (int i = 0; i < 1000; ++i) last = short_frames.pass(tiny, Duration{}).at(0).due;
  expect_near("shortest frames per second at 10 Gb/s", 14'880'952.38, 1000 / last.seconds, 1e-9);
}

TEST(FabricLink, AnIdleLinkSavesNothingUp) {
  Link link("l", {.rate = Bandwidth{1e6}}, seed);
  const FramePtr frame =
      shared(plain_frame(mac(2), mac(1), 976));  // 1 ms with 24 bytes of overhead
  EXPECT_DOUBLE_EQ(link.pass(frame, Duration{}).at(0).due.seconds, 1e-3);
  EXPECT_DOUBLE_EQ(link.pass(frame, Duration{1}).at(0).due.seconds, 1.001);
  EXPECT_DOUBLE_EQ(link.pass(frame, Duration{1}).at(0).due.seconds, 1.002);
}

TEST(FabricLink, BothSidesOfTheQueueLimit) {
  // All frames wait except the one being sent. 4 frames of 1000 bytes fit into 4000 bytes, but not
  // into 3999.
  for (const auto& [limit, passed] :
       {std::pair<Bytes, std::size_t>{4000_B, 5}, {3999_B, 4}, {0_B, 1}}) {
    Link link("l", {.rate = Bandwidth{1024e3}, .queue = limit}, seed);
    const FramePtr frame = shared(plain_frame(mac(2), mac(1), 1000));  // 1 ms each
    std::size_t count = 0;
    for (int i = 0; i < 10; ++i) count += link.pass(frame, Duration{}).size();
    EXPECT_EQ(count, passed) << to_string(limit);
    EXPECT_EQ(link.counters().dropped.queue, 10 - passed);
    // After 1 ms the next frame starts to leave and frees its place.
    EXPECT_EQ(link.pass(frame, Duration{0.0009}).size(), 0U);
    EXPECT_EQ(link.pass(frame, Duration{0.0010001}).size(), 1U);
  }
}

TEST(FabricLink, DownAfterNFrames) {
  Link link("l", {.down_after = 3}, seed);
  EXPECT_EQ(deliveries_of(link, 6), (std::vector<std::size_t>{1, 1, 1, 0, 0, 0}));
  EXPECT_EQ(link.counters().dropped.down, 3U);
  Link from_the_start("l", {.down_after = 0}, seed);
  EXPECT_EQ(deliveries_of(from_the_start, 2), (std::vector<std::size_t>{0, 0}));
}

TEST(FabricLink, UpAgainAfterFramesOrTime) {
  Link frames("l", {.down_after = 2, .down_frames = 3}, seed);
  EXPECT_EQ(deliveries_of(frames, 8), (std::vector<std::size_t>{1, 1, 0, 0, 0, 1, 1, 1}))
      << "and stays up";
  // One frame per microsecond: the third (at 2 us) is the first one lost; at 5 us the link is up
  // again.
  Link time("l", {.down_after = 2, .down_for = 3_us}, seed);
  EXPECT_EQ(deliveries_of(time, 8), (std::vector<std::size_t>{1, 1, 0, 0, 0, 1, 1, 1}));
}

TEST(FabricLink, DownAtATime) {
  const FramePtr frame = shared(roce_frame({}));
  Link link("l", {.down_at = 10_us, .down_for = 5_us}, seed);
  EXPECT_EQ(link.pass(frame, Duration{9.999e-6}).size(), 1U);
  EXPECT_EQ(link.pass(frame, 10_us).size(), 0U);
  EXPECT_EQ(link.pass(frame, Duration{14.999e-6}).size(), 0U);
  EXPECT_EQ(link.pass(frame, 10_us + 5_us).size(), 1U);
  Link nobody_looked("l", {.down_at = 10_us, .down_for = 5_us}, seed);
  EXPECT_EQ(nobody_looked.pass(frame, 16_us).size(), 1U) << "it was down while no frame arrived";
}

TEST(FabricLink, PauseHoldsAndKeepsTheOrder) {
  Link link("l", {.pause_at = 10_us, .pause_for = 20_us}, seed);
  const FramePtr frame = shared(roce_frame({}));
  EXPECT_EQ(link.pass(frame, Duration{9.999e-6}).at(0).due, Duration{9.999e-6});
  EXPECT_EQ(link.pass(frame, 10_us).at(0).due, 10_us + 20_us);
  EXPECT_EQ(link.pass(frame, 17_us).at(0).due, 10_us + 20_us)
      << "the times must be exactly equal to keep the order";
  EXPECT_EQ(link.pass(frame, 31_us).at(0).due, 31_us);
  EXPECT_EQ(link.counters().dropped.total(), 0U);
}

TEST(FabricLink, PauseWithAQueueLimit) {
  Link link("l", {.queue = 250_B, .pause_at = 0_ns, .pause_for = 20_us}, seed);
  const FramePtr frame = shared(plain_frame(mac(2), mac(1), 100));
  for (const std::size_t passed : {1U, 1U, 0U}) EXPECT_EQ(link.pass(frame, 1_us).size(), passed);
}

TEST(FabricLink, SharesAreKept) {
  struct Case {
    const char* what;
    LinkOptions options;
    std::uint64_t (*count)(const DirectionCounters&);
  };
  const Probability share{0.01};
  const Case cases[] = {
      {"lost", {.loss = share}, [](const auto& c) { return c.dropped.loss; }},
      {"duplicated", {.duplicate = share}, [](const auto& c) { return c.duplicated; }},
      {"reordered",
       {.reorder = share, .reorder_by = 10_us},
       [](const auto& c) { return c.reordered; }},
      {"corrupted", {.corrupt = share}, [](const auto& c) { return c.corrupted; }},
      {"marked", {.mark = share}, [](const auto& c) { return c.marked; }},
  };
  constexpr std::size_t frames = 200'000;
  for (const Case& c : cases) {
    Link link("l", c.options, seed);
    deliveries_of(link, frames);
    // Allow 4 standard deviations: for 2000 of 200,000 one is 44.5, or 2.2 %.
    expect_near(c.what, share.share * frames, static_cast<double>(c.count(link.counters())), 0.089);
  }
  Link never("l", {}, seed);
  deliveries_of(never, 1000);
  EXPECT_EQ(never.counters().dropped.loss, 0U);
  Link always("l", {.loss = {1}}, seed);
  deliveries_of(always, 1000);
  EXPECT_EQ(always.counters().dropped.loss, 1000U);
}

TEST(FabricLink, DuplicatesFollowAtOnceAndTakeTheirTime) {
  Link link("l", {.rate = Bandwidth{1e6}, .duplicate = {1}}, seed);
  const auto deliveries = link.pass(shared(plain_frame(mac(2), mac(1), 976)), Duration{});
  ASSERT_EQ(deliveries.size(), 2U);
  EXPECT_EQ(deliveries[0].frame, deliveries[1].frame);
  EXPECT_DOUBLE_EQ(deliveries[0].due.seconds, 1e-3);
  EXPECT_DOUBLE_EQ(deliveries[1].due.seconds, 2e-3);
}

TEST(FabricLink, ReorderedMeansOvertaken) {
  Link link("l", {.reorder = {1}, .reorder_by = 10_us}, seed);
  const FramePtr frame = shared(roce_frame({}));
  EXPECT_EQ(link.pass(frame, 0_ns).at(0).due, 10_us);
  EXPECT_EQ(link.pass(frame, 5_us).at(0).due, 15_us);
  EXPECT_EQ(link.counters().reordered, 0U) << "both were delayed, neither was overtaken";
}

TEST(FabricLink, OnlyRoce) {
  LinkOptions options{.loss = {1}, .roce_only = true};
  Link link("l", options, seed);
  EXPECT_EQ(deliveries_of(link, 3, 1_us, false), (std::vector<std::size_t>{1, 1, 1}));
  EXPECT_EQ(deliveries_of(link, 3, 1_us, true), (std::vector<std::size_t>{0, 0, 0}));
  // ARP in between does not affect RoCE: the same frames have the same outcome.
  Link quiet("l", {.loss = {0.5}, .roce_only = true}, seed);
  Link noisy("l", {.loss = {0.5}, .roce_only = true}, seed);
  for (int i = 0; i < 200; ++i) {
    deliveries_of(noisy, static_cast<std::size_t>(i % 3), 1_us, false);
    EXPECT_EQ(deliveries_of(quiet, 1), deliveries_of(noisy, 1));
  }
}

LinkOptions everything() {
  return {.rate = 10_Gbps,
          .delay = 2_us,
          .loss = {0.05},
          .duplicate = {0.05},
          .reorder = {0.05},
          .corrupt = {0.05},
          .mark = {0.05}};
}

/// Everything that happens to 2000 frames on a link, as text.
std::string story(const std::string& name, const LinkOptions& options, Seed of) {
  Link link(name, options, of);
  std::string text;
  for (std::uint32_t psn = 0; psn < 2000; ++psn) {
    for (const Delivery& delivery : link.pass(shared(roce_frame({.psn = psn})), 1_us * psn)) {
      text.append(delivery.frame->begin(), delivery.frame->end());
      text += to_string(delivery.due);
    }
    text += ';';
  }
  return text;
}

TEST(FabricLink, TheSeedDecides) {
  EXPECT_EQ(story("h0/nic0.tx", everything(), seed), story("h0/nic0.tx", everything(), seed));
  EXPECT_NE(story("h0/nic0.tx", everything(), seed), story("h0/nic0.tx", everything(), {43}));
  EXPECT_NE(story("h0/nic0.tx", everything(), seed), story("h0/nic1.tx", everything(), seed))
      << "each link has its own numbers";
}

TEST(FabricLink, TheFirstDecisionsOfSeed1) {
  // Fixed values, so that no change of compiler, library or code changes old runs unnoticed.
  Link link("h0/nic0.tx", {.loss = {0.1}}, {1});
  std::vector<std::size_t> lost;
  for (std::size_t i = 0; i < 100; ++i)
    if (link.pass(shared(roce_frame({})), 1_us * static_cast<double>(i)).empty()) lost.push_back(i);
  EXPECT_EQ(lost, (std::vector<std::size_t>{1, 5, 10, 25, 49, 65, 70, 75, 83, 96, 97}));
}

TEST(FabricLink, OneFaultLeavesTheOthersAlone) {
  LinkOptions more = everything();
  more.loss = {0};
  more.delay = 7_us;
  Link a("l", everything(), seed);
  Link b("l", more, seed);
  for (std::uint32_t psn = 0; psn < 2000; ++psn) {
    const auto with_loss = a.pass(shared(roce_frame({.psn = psn})), 1_us * psn);
    const auto without = b.pass(shared(roce_frame({.psn = psn})), 1_us * psn);
    if (with_loss.empty()) continue;
    EXPECT_EQ(*with_loss[0].frame, *without[0].frame) << psn;
    EXPECT_EQ(with_loss.size(), without.size()) << psn;
  }
}

}  // namespace
