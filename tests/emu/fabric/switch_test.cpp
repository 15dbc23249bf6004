#include "emu/fabric/switch_core.hpp"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;
using namespace gdr::literals;
using gdr::Bytes;
using gdr::Duration;

/// A switch with simulated time. Host n's NIC has mac(n + 1).
class Switch {
 public:
  explicit Switch(const FabricOptions& options) : core(options) {
    for (std::size_t i = 0; i < options.ports.size(); ++i) core.connect(i);
  }

  void receive(std::size_t port, const Frame& frame, Duration now) {
    core.receive(port, {shared(frame), nullptr}, now);
  }

  /// "PORT:MARK" for each frame delivered until `now`; the mark is its first payload byte.
  std::vector<std::string> expect(Duration now) {
    std::vector<std::string> out;
    core.advance(now, [&](std::size_t port, const Parcel& parcel) {
      if (takes)
        out.push_back(std::to_string(port) + ":" + std::to_string(parcel.frame->at(14) - 14));
      return takes;
    });
    return out;
  }

  SwitchCore core;
  bool takes = true;
};

FabricOptions ports(std::size_t count) {
  FabricOptions options;
  for (std::size_t i = 0; i < count; ++i)
    options.ports.push_back({"h" + std::to_string(i) + "/nic0", "", -1, {}, {}});
  return options;
}

using Out = std::vector<std::string>;

TEST(FabricSwitch, FloodsUntilItHasLearned) {
  Switch s(ports(3));
  s.receive(0, plain_frame(mac(2), mac(1), 60, 1), 1_us);
  EXPECT_EQ(s.expect(1_us), (Out{"1:1", "2:1"})) << "mac(2) is not known yet; never back to port 0";
  s.receive(1, plain_frame(mac(1), mac(2), 60, 2), 2_us);
  EXPECT_EQ(s.expect(2_us), (Out{"0:2"}));
  s.receive(0, plain_frame(mac(2), mac(1), 60, 3), 3_us);
  EXPECT_EQ(s.expect(3_us), (Out{"1:3"}));
  s.receive(2, plain_frame(broadcast, mac(3), 60, 4), 4_us);
  EXPECT_EQ(s.expect(4_us), (Out{"0:4", "1:4"}));
  // A group address as the source is not learned.
  s.receive(2, plain_frame(mac(1), {0x01, 0, 0x5e, 0, 0, 1}, 60, 5), 5_us);
  s.receive(1, plain_frame({0x01, 0, 0x5e, 0, 0, 1}, mac(2), 60, 6), 6_us);
  EXPECT_EQ(s.expect(6_us), (Out{"0:5", "0:6", "2:6"}));
}

TEST(FabricSwitch, AnAddressMoves) {
  Switch s(ports(3));
  s.receive(0, plain_frame(broadcast, mac(1), 60, 1), 1_us);
  s.receive(2, plain_frame(broadcast, mac(1), 60, 2), 2_us);
  s.expect(2_us);
  s.receive(1, plain_frame(mac(1), mac(2), 60, 3), 3_us);
  EXPECT_EQ(s.expect(3_us), (Out{"2:3"}));
}

TEST(FabricSwitch, Filters) {
  Switch s(ports(2));
  s.receive(0, plain_frame(broadcast, mac(1), 60, 0), 1_us);
  s.receive(0, plain_frame(mac(1), mac(9), 60, 0), 1_us);                       // to its own port
  s.receive(0, plain_frame({0x01, 0x80, 0xc2, 0, 0, 1}, mac(1), 60, 0), 1_us);  // a pause frame
  s.receive(0, Frame(13, 0), 1_us);                                             // no header
  EXPECT_EQ(s.expect(1_us), (Out{"1:0"}));
  const PortCounters counters = s.core.counters(0);
  EXPECT_EQ(counters.tx.dropped.filtered, 2U);
  EXPECT_EQ(counters.tx.dropped.runt, 1U);
  EXPECT_EQ(counters.tx.arrived, (Traffic{4, Bytes{193}}));
  EXPECT_EQ(counters.tx.passed, (Traffic{1, Bytes{60}}));
}

TEST(FabricSwitch, DelayBelongsToBothLinks) {
  FabricOptions options = ports(2);
  options.ports[0].tx.delay = 5_us;
  options.ports[1].rx.delay = 7_us;
  Switch s(options);
  s.receive(0, plain_frame(broadcast, mac(1), 60, 1), 1_us);
  EXPECT_EQ(s.core.next_due(), 1_us + 5_us);
  EXPECT_EQ(s.expect(6_us), Out{});
  EXPECT_EQ(s.core.next_due(), 1_us + 5_us + 7_us);
  EXPECT_EQ(s.expect(Duration{12.999e-6}), Out{});
  EXPECT_EQ(s.expect(Duration{13.001e-6}), (Out{"1:1"}));
  EXPECT_EQ(s.core.next_due(), std::nullopt);
}

TEST(FabricSwitch, TwoSendersShareAPort) {
  // 100 frames of 976 bytes (1 ms each at 1 MB/s with 24 bytes of overhead) from each of two ports,
  // all at once, to a third.
  FabricOptions options = ports(3);
  options.ports[2].rx.rate = gdr::Bandwidth{1e6};
  Switch s(options);
  s.receive(2, plain_frame(broadcast, mac(3)), Duration{});
  s.expect(Duration{});
  for (int i = 0; i < 100; ++i)
    for (const std::size_t from : {0U, 1U})
      s.receive(from, plain_frame(mac(3), mac(static_cast<std::uint8_t>(from + 1)), 976),
                Duration{});
  const double expectation = 0.2;
  EXPECT_EQ(s.expect(Duration{expectation - 0.5e-3}).size(), 199U);
  EXPECT_EQ(s.core.next_due().has_value(), true);
  const double actual = s.core.next_due()->seconds;
  std::printf(
      "200 frames of 1 ms through one port [s]  expectation %.9g  actual %.9g  deviation %+.3g\n",
      expectation, actual, actual / expectation - 1);
  EXPECT_NEAR(actual, expectation, 1e-12);
}

TEST(FabricSwitch, ANicThatGoes) {
  FabricOptions options = ports(3);
  options.ports[1].rx.delay = 5_us;
  Switch s(options);
  s.receive(1, plain_frame(broadcast, mac(2)), Duration{});
  s.expect(1_us);
  s.receive(0, plain_frame(mac(2), mac(1), 60, 1), 2_us);
  s.expect(2_us);
  s.core.disconnect(1);
  EXPECT_EQ(s.expect(10_us), Out{}) << "frames in flight to it are dropped";
  EXPECT_EQ(s.core.counters(1).rx.dropped.unconnected, 1U);
  s.receive(0, plain_frame(mac(2), mac(1), 60, 2), 11_us);
  EXPECT_EQ(s.expect(20_us), (Out{"2:2"})) << "its address is forgotten, the frame is flooded";
  s.core.connect(1);
  s.receive(0, plain_frame(mac(2), mac(1), 60, 3), 21_us);
  EXPECT_EQ(s.expect(30_us), (Out{"2:3", "1:3"}));
}

TEST(FabricSwitch, ANicThatTakesNothing) {
  Switch s(ports(2));
  s.takes = false;
  s.receive(0, plain_frame(broadcast, mac(1), 60), Duration{});
  s.expect(Duration{});
  EXPECT_EQ(s.core.counters(1).rx.dropped.stalled, 1U);
  EXPECT_EQ(s.core.counters(1).rx.passed.frames, 0U);
}

TEST(FabricSwitch, FaultsCountFromWhenTheyAreArmed) {
  FabricOptions options = ports(2);
  options.armed = false;
  options.ports[0].tx.down_after = 2;
  options.ports[1].rx.down_at = 10_us;
  Switch s(options);
  for (int i = 0; i < 5; ++i) s.receive(0, plain_frame(broadcast, mac(1), 60, 1), 100_us);
  EXPECT_EQ(s.expect(100_us).size(), 5U);
  s.core.arm(200_us);
  for (int i = 0; i < 5; ++i) s.receive(0, plain_frame(broadcast, mac(1), 60, 1), 201_us);
  EXPECT_EQ(s.expect(201_us).size(), 2U);
  s.core.arm(300_us);  // has no effect
  s.receive(1, plain_frame(broadcast, mac(2), 60, 1), 210_us);
  EXPECT_EQ(s.core.counters(0).tx.dropped.down, 3U);
}

TEST(FabricSwitch, OtherFaultsHoldFromWhenTheyAreSetAndCountersGoOn) {
  FabricOptions options = ports(2);
  options.ports[0].tx.down_after = 2;
  Switch s(options);
  const auto send = [&](int frames, Duration at) {
    for (int i = 0; i < frames; ++i) s.receive(0, plain_frame(broadcast, mac(1), 60, 1), at);
    return s.expect(at).size();
  };
  EXPECT_EQ(send(5, 100_us), 2U);
  std::vector<PortOptions> others = options.ports;
  others[0].tx = {};
  others[1].rx.down_after = 4;
  s.core.set_faults(others, {7}, 200_us);
  EXPECT_EQ(send(5, 201_us), 4U) << "frame counts start again";
  s.core.set_faults(options.ports, {1}, 300_us);
  EXPECT_EQ(send(5, 301_us), 2U);
  EXPECT_EQ(s.core.counters(0).tx.arrived.frames, 15U);
  EXPECT_EQ(s.core.counters(0).tx.dropped.down, 6U);
  EXPECT_EQ(s.core.counters(1).rx.dropped.down, 1U);
}

/// Sends random traffic through links with every fault; returns all deliveries and the final
/// counters.
std::string story(const FabricOptions& options, std::size_t quiet_port, Switch& s) {
  std::mt19937_64 traffic(7);
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    const Duration now = 1_us * i;
    const auto from = static_cast<std::size_t>(traffic() % options.ports.size());
    const auto to = static_cast<std::uint8_t>(traffic() % options.ports.size());
    const bool to_all = traffic() % 8 == 0;
    if (from == quiet_port) continue;
    s.receive(from,
              plain_frame(to_all ? broadcast : mac(static_cast<std::uint8_t>(to + 1)),
                          mac(static_cast<std::uint8_t>(from + 1)),
                          60 + static_cast<std::size_t>(i % 1000)),
              now);
    for (const std::string& out : s.expect(now)) text += out + ' ';
    text += std::to_string(i) + '\n';
  }
  for (const std::string& out : s.expect(Duration{10})) text += out + ' ';
  return text;
}

FabricOptions everything() {
  FabricOptions options = ports(4);
  for (PortOptions& port : options.ports)
    for (LinkOptions* link : {&port.tx, &port.rx})
      *link = {.rate = 1_GBps,
               .queue = Bytes{4000},
               .delay = 3_us,
               .loss = {0.05},
               .duplicate = {0.05},
               .reorder = {0.05},
               .reorder_by = 20_us,
               .corrupt = {0.05},
               .mark = {0.05},
               .pause_at = 500_us,
               .pause_for = 100_us,
               .down_after = 300,
               .down_frames = 20};
  for (PortOptions& port : options.ports) port.rx.rate = gdr::Bandwidth{4e8};
  return options;
}

TEST(FabricSwitch, SameSeedSameRun) {
  Switch a(everything());
  Switch b(everything());
  EXPECT_EQ(story(everything(), 99, a), story(everything(), 99, b));
  FabricOptions other = everything();
  other.seed = {2};
  Switch c(other);
  Switch d(everything());
  EXPECT_NE(story(other, 99, c), story(everything(), 99, d));
}

TEST(FabricSwitch, AQuietPortDoesNotChangeTheFateOfOthersAtTheirOwnLinks) {
  Switch all(everything());
  Switch some(everything());
  story(everything(), 99, all);
  story(everything(), 2, some);
  for (const std::size_t port : {0U, 1U, 3U}) {
    EXPECT_EQ(all.core.counters(port).tx.dropped.loss, some.core.counters(port).tx.dropped.loss);
    EXPECT_EQ(all.core.counters(port).tx.dropped.down, some.core.counters(port).tx.dropped.down);
    EXPECT_EQ(all.core.counters(port).tx.corrupted, some.core.counters(port).tx.corrupted);
  }
}

TEST(FabricSwitch, EveryFrameIsAccountedFor) {
  Switch s(everything());
  story(everything(), 99, s);
  ASSERT_EQ(s.core.next_due(), std::nullopt);
  std::uint64_t full_queues = 0;
  for (std::size_t port = 0; port < 4; ++port) {
    for (const DirectionCounters& c : {s.core.counters(port).tx, s.core.counters(port).rx}) {
      EXPECT_EQ(c.arrived.frames + c.duplicated, c.passed.frames + c.dropped.total());
      EXPECT_GT(c.dropped.loss, 0U);
      EXPECT_EQ(c.dropped.down, 20U);
      full_queues += c.dropped.queue;
      EXPECT_GT(c.duplicated, 0U);
      EXPECT_GT(c.reordered, 0U);
      EXPECT_GT(c.corrupted, 0U);
    }
  }
  EXPECT_GT(full_queues, 0U);
}

TEST(FabricSwitch, AFloodOfAddressesIsBounded) {
  Switch s(ports(3));
  for (std::size_t i = 0; i < SwitchCore::max_addresses + 10; ++i) {
    s.receive(0,
              plain_frame(broadcast, {0x02, 0, 0, 0, static_cast<std::uint8_t>(i >> 8U),
                                      static_cast<std::uint8_t>(i)}),
              Duration{});
    s.expect(Duration{});
  }
  s.receive(1, plain_frame({0x02, 0, 0, 0, 0, 1}, mac(2), 60, 1), Duration{});
  EXPECT_EQ(s.expect(Duration{}), (Out{"0:1"}));
  s.receive(1, plain_frame({0x02, 0, 0, 0, 0x10, 0x05}, mac(2), 60, 2), Duration{});
  EXPECT_EQ(s.expect(Duration{}), (Out{"0:2", "2:2"})) << "no longer learned: flooded";
}

TEST(FabricCounters, AsJson) {
  Switch s(ports(2));
  s.receive(0, roce_frame({.psn = 5, .payload = 100}), Duration{});
  s.expect(Duration{});
  FabricCounters counters;
  counters.ports.push_back(s.core.counters(0));
  const gdr::json::Value json = to_json(counters);
  const gdr::json::Value& port = json.find("ports")->as<gdr::json::Array>()->at(0);
  EXPECT_EQ(*port.find("name"), gdr::json::Value("h0/nic0"));
  EXPECT_EQ(*port.find("tx")->find("passed")->find("frames"), gdr::json::Value(1));
  EXPECT_EQ(*port.find("tx")->find("dropped")->find("loss"), gdr::json::Value(0));
  EXPECT_EQ(gdr::json::dump(port.find("roce")->as<gdr::json::Array>()->at(0), 300),
            "{\"from\": \"10.0.0.1\", \"to\": \"10.0.0.2\", \"qp\": 17, \"kind\": \"requests\", "
            "\"packets\": 1, \"payload\": 100, "
            "\"announced\": 0, \"repeated_packets\": 0, \"repeated_payload\": 0}\n");
}

}  // namespace
