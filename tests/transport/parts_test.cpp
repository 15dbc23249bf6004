// The parts of the transport by themselves: policy, GIDs, frames, streams, checksums, measuring.
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "src/common/error.hpp"
#include "src/transport/lanes/crc32c.hpp"
#include "src/transport/lanes/frame.hpp"
#include "src/transport/lanes/stream_lane.hpp"
#include "src/transport/measure.hpp"
#include "src/transport/verbs/gid.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

NicDistance between(const std::string& a, const std::string& b, int node_a = 0, int node_b = 0) {
  return distance_of({a.empty() ? a : "/sys/devices/" + a, node_a},
                     {b.empty() ? b : "/sys/devices/" + b, node_b});
}

TEST(NicDistance, IsNcclsOfTheSamePaths) {
  const std::string port = "pci0000:15/0000:15:01.0/0000:16:00.0";
  EXPECT_EQ(between(port + "/0000:17:00.0/0000:18:00.0", port + "/0000:17:01.0/0000:19:00.0"),
            NicDistance::pix)
      << "one switch";
  EXPECT_EQ(between(port + "/0000:17:00.0/0000:18:00.0",
                    port + "/0000:17:01.0/0000:1a:00.0/0000:1b:00.0/0000:1c:00.0"),
            NicDistance::pxb)
      << "a switch below the switch";
  EXPECT_EQ(between("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:15/0000:15:02.0/0000:19:00.0"),
            NicDistance::phb)
      << "two root ports";
  EXPECT_EQ(
      between("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:37/0000:37:01.0/0000:38:00.0", 0, 0),
      NicDistance::phb)
      << "two host bridges of a node";
  EXPECT_EQ(
      between("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:97/0000:97:01.0/0000:98:00.0", 0, 1),
      NicDistance::sys);
  EXPECT_EQ(between("pci0000:15/0000:15:01.0/0000:16:00.0", "pci0000:97/0000:97:01.0/0000:98:00.0",
                    -1, -1),
            NicDistance::sys)
      << "an unknown node is no common one";
  EXPECT_EQ(between(port, port), NicDistance::loc);
  EXPECT_EQ(between("", port), NicDistance::phb) << "NCCL puts what is in no PCIe tree at the CPU";
}

TEST(NicDistance, IsReadAsNcclReadsIt) {
  EXPECT_EQ(parse_distance("LOC"), NicDistance::loc);
  EXPECT_EQ(parse_distance("pxb"), NicDistance::pxb);
  EXPECT_EQ(parse_distance("3"), NicDistance::phb);
  EXPECT_EQ(parse_distance("7"), NicDistance::sys);
  EXPECT_THROW(parse_distance("NODE"), InputError);
  EXPECT_THROW(parse_distance("-1"), InputError);
  EXPECT_THROW(parse_path("rdma"), InputError);
  EXPECT_EQ(parse_path("auto"), std::nullopt);
}

PathOffer offer_of(const std::function<void(PathFacts&)>& change) {
  PathFacts facts;
  facts.memory = "gpu";
  facts.nics = "nic";
  facts.has_nic = facts.registers = true;
  facts.distance = NicDistance::pix;
  facts.registration = "dma-buf";
  change(facts);
  const OwnChoice own = choose_own(facts);
  EXPECT_TRUE(own.status.ok()) << own.status.to_string();
  return own.offer;
}

TEST(Policy, BothSidesComeToTheSameEnd) {
  std::vector<PathOffer> offers;
  for (const bool nic : {false, true})
    for (const bool registers : {false, true})
      for (const NicDistance distance : {NicDistance::pix, NicDistance::sys})
        for (const std::optional<TransportPath> wanted :
             {std::optional<TransportPath>(), std::optional(TransportPath::gdr),
              std::optional(TransportPath::staged), std::optional(TransportPath::tcp)}) {
          PathFacts facts{"gpu",    nic ? "nic" : "none", nic,       wanted,
                          distance, NicDistance::pxb,     registers, "dma-buf"};
          const OwnChoice own = choose_own(facts);
          const bool possible = !wanted || *wanted == TransportPath::tcp ||
                                (nic && (*wanted == TransportPath::staged || registers));
          ASSERT_EQ(own.status.ok(), possible);
          if (possible) offers.push_back(own.offer);
        }
  for (const PathOffer& a : offers)
    for (const PathOffer& b : offers) {
      const auto here = choose_together(a, b);
      const auto there = choose_together(b, a);
      ASSERT_EQ(here.ok(), there.ok());
      if (!here.ok()) continue;
      EXPECT_EQ(here.value().path, there.value().path);
      EXPECT_GE(here.value().path, std::max(a.best, b.best)) << "no side does what it cannot";
      if (a.wanted) {
        EXPECT_EQ(here.value().path, *a.wanted);
      }
    }
}

TEST(Policy, AWishOfThePeerBeatsTheDistanceHere) {
  const PathOffer far = offer_of([](PathFacts& facts) { facts.distance = NicDistance::sys; });
  const PathOffer asks = offer_of([](PathFacts& facts) { facts.wanted = TransportPath::gdr; });
  const PathOffer near = offer_of([](PathFacts&) {});
  EXPECT_EQ(choose_together(far, near).value().path, TransportPath::staged);
  EXPECT_EQ(choose_together(far, asks).value().path, TransportPath::gdr);
  EXPECT_EQ(choose_together(asks, far).value().path, TransportPath::gdr);
  const PathOffer cannot =
      offer_of([](PathFacts& facts) { facts.registers = false, facts.registration = "EFAULT"; });
  EXPECT_EQ(choose_together(asks, cannot).status().text(),
            "path gdr was asked for, but the peer cannot: gpu does not register with nic: EFAULT");
}

TEST(Gid, RoceV2OfAnIpv4AddressIsChosen) {
  Gid v4{};
  v4[10] = v4[11] = 0xff;
  v4[12] = 10;
  v4[15] = 7;
  Gid local{};
  local[0] = 0xfe;
  local[1] = 0x80;
  const std::vector<GidEntry> entries{{0, local, GidType::rocev1},
                                      {1, local, GidType::rocev2},
                                      {2, v4, GidType::rocev1},
                                      {3, v4, GidType::rocev2}};
  EXPECT_EQ(select_gid("nic", entries, true, {}).value().index, 3U);
  EXPECT_EQ(select_gid("nic", {entries[0], entries[1]}, true, {}).value().index, 1U);
  EXPECT_EQ(select_gid("nic", entries, true, 0).value().index, 0U) << "by number it is that one";
  EXPECT_EQ(select_gid("nic", {entries[1], entries[3]}, true, 2).status().text(),
            "nic: there is no GID index 2; there are: 1 RoCEv2 "
            "fe80:0000:0000:0000:0000:0000:0000:0000, 3 RoCEv2 10.0.0.7");
  EXPECT_EQ(select_gid("nic", {}, true, {}).status().text(),
            "nic: no RoCEv2 entry among its GIDs: none; has its interface an address?");
}

TEST(Crc32c, IsCastagnolis) {
  const std::string text = "123456789";
  Crc32c whole;
  whole.add(std::as_bytes(std::span(text)));
  EXPECT_EQ(whole.value(), 0xe3069283U);
  Crc32c parts;
  for (const char& c : text) parts.add(std::as_bytes(std::span(&c, 1)));
  EXPECT_EQ(parts.value(), 0xe3069283U);
  EXPECT_EQ(Crc32c().value(), 0U);
}

TEST(Frames, ComeBackAsTheyWere) {
  Frame frame;
  frame.type = FrameType::put;
  frame.flags = flag_immediate;
  frame.credits = 65535;
  frame.payload = 100;
  frame.operation = 0x0102030405060708;
  frame.address = 1ULL << 47U;
  frame.total = 5000000000;  // beyond 32 bits
  frame.offset = 4999999900;
  frame.value = ~std::uint64_t{0};
  frame.extra = 3;
  std::array<std::byte, frame_header> bytes{};
  put_frame(bytes, frame);
  EXPECT_EQ(parse_frame(bytes, 100).value(), frame);
  EXPECT_EQ(parse_frame(bytes, 99).status().cause(), Cause::protocol)
      << "more than there is room for";
  frame.offset = 4999999901;
  put_frame(bytes, frame);
  EXPECT_EQ(parse_frame(bytes, 100).status().cause(), Cause::protocol) << "beyond the end";
}

Hello greeting() {
  Hello hello;
  hello.offer = {{TransportPath::staged, "because"}, TransportPath::gdr, "", TransportPath::staged};
  hello.chunk = 65536;
  hello.depth = 8;
  hello.reads_in_flight = 16;
  hello.memory = "fake0";
  for (unsigned i = 0; i < 3; ++i) hello.lanes.push_back({i, i * 7, Gid{1, 2, 3}, 9, 4096});
  return hello;
}

TEST(Frames, AGreetingComesBackAndNothingElseDoes) {
  const auto bytes = put_hello(greeting());
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(parse_hello_header(all.first<hello_header>()).value(), bytes.size() - hello_header);
  const auto back = parse_hello(all.subspan(hello_header));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back.value().lanes, greeting().lanes);
  EXPECT_EQ(back.value().offer.choice.reason, "because");
  for (std::size_t size = hello_header; size < bytes.size(); ++size)
    EXPECT_FALSE(parse_hello(all.subspan(hello_header, size - hello_header)).ok()) << size;
  auto version = bytes;
  version[4] = std::byte{2};
  EXPECT_EQ(
      parse_hello_header(std::span<const std::byte>(version).first<hello_header>()).status().text(),
      "the peer speaks version 2 of the protocol, this is 1");
}

TEST(Frames, ChangedBytesNeverCrashAndNeverExceedTheirLimits) {
  const auto bytes = put_hello(greeting());
  std::uint32_t state = 1;
  for (int round = 0; round < 20000; ++round) {
    auto changed = bytes;
    for (int i = 0; i < 3; ++i) {
      state = state * 1664525U + 1013904223U;
      changed[(state >> 8U) % changed.size()] = static_cast<std::byte>(state >> 24U);
    }
    const auto size = parse_hello_header(std::span<const std::byte>(changed).first<hello_header>());
    if (size.ok()) {
      EXPECT_LE(size.value(), largest_hello);
    }
    const auto hello = parse_hello(std::span<const std::byte>(changed).subspan(hello_header));
    if (hello.ok()) {
      EXPECT_LE(hello.value().lanes.size(), max_lanes);
    }
    const auto frame = parse_frame(std::span<const std::byte>(changed).first<frame_header>(), 1000);
    if (frame.ok()) {
      EXPECT_LE(frame.value().payload, 1000U);
    }
  }
}

TEST(Streams, ByTcpBothEndsTalkAndTheEndIsSeen) {
  const auto listener = listen(SetUp::tcp, 0);
  std::unique_ptr<ByteStream> there;
  std::thread thread([&] {
    there = std::move(connect(SetUp::tcp, "127.0.0.1", listener->port(), Duration{5}).value());
  });
  auto here = std::move(listener->accept(Duration{5}).value());
  thread.join();
  const std::string text = "hello";
  EXPECT_EQ(there->write_some(std::as_bytes(std::span(text))).value(), 5U);
  std::array<std::byte, 16> bytes{};
  std::size_t count = 0;
  while (count == 0) count = here->read_some(bytes).value();
  EXPECT_EQ(0, std::memcmp(bytes.data(), "hello", count));
  EXPECT_EQ(here->read_some(bytes).value(), 0U) << "nothing more, and no waiting";
  there.reset();
  Result<std::size_t> after = std::size_t{0};
  while (after.ok()) after = here->read_some(bytes);
  EXPECT_EQ(after.status().cause(), Cause::peer_gone);
}

/// Keeps the frames that it receives.
class Holder final : public LaneListener {
 public:
  void on_frame(Lane&, const Frame& frame, unsigned slot) override {
    frames.emplace_back(frame, slot);
  }
  void on_immediate(std::uint32_t, Bytes) override {}
  void on_rdma(std::uint64_t) override {}
  void on_broken(Lane&, CompletionStatus) override {}
  void on_broken(const Status& status) override { ADD_FAILURE() << status.to_string(); }
  std::vector<std::pair<Frame, unsigned>> frames;
};

TEST(Streams, ABufferThatIsBeingFilledIsNotGivenToAnotherFrame) {
  auto [mine, theirs] = stream_pair();
  StreamLane lane(std::move(mine), Bytes{1024}, 4);
  Holder holder;
  const auto bytes_of = [](std::uint8_t value) {
    std::vector<std::byte> bytes(frame_header + 1000, std::byte{value});
    Frame frame;
    frame.type = FrameType::put;
    frame.payload = 1000;
    frame.total = 1000;
    put_frame(std::span<std::byte, frame_header>(bytes.data(), frame_header), frame);
    return bytes;
  };
  const auto send = [&, &there = *theirs](std::span<const std::byte> bytes) {
    ASSERT_EQ(there.write_some(bytes).value(), bytes.size());
    lane.poll(holder);
  };
  const auto second = bytes_of(2);
  send(bytes_of(1));
  send(std::span(second).first(500));
  ASSERT_EQ(holder.frames.size(), 1U);
  lane.release(holder.frames[0].second);  // while the second one is coming
  send(std::span(second).subspan(500));
  for (std::uint8_t value = 3; value <= 6; ++value) send(bytes_of(value));
  ASSERT_EQ(holder.frames.size(), 6U);
  for (std::size_t i = 1; i < holder.frames.size(); ++i)
    EXPECT_EQ(lane.received(holder.frames[i].second)[999],
              std::byte{static_cast<std::uint8_t>(i + 1)})
        << "frame " << i + 1;
}

TEST(Streams, WithoutAServerConnectingEndsInTime) {
  const auto port = listen(SetUp::tcp, 0)->port();
  const auto stream = connect(SetUp::tcp, "127.0.0.1", port, Duration{0.2});
  EXPECT_EQ(stream.status().cause(), Cause::timed_out);
  EXPECT_NE(stream.status().text().find(":" + std::to_string(port) +
                                        " by TCP: not connected within 0.2s"),
            std::string::npos)
      << stream.status().text();
  EXPECT_EQ(connect(SetUp::tcp, "no.such.host.invalid", 1, Duration{0.2}).status().cause(),
            Cause::invalid);
  EXPECT_EQ(listen(SetUp::tcp, 0)->accept(Duration{0.05}).status().cause(), Cause::timed_out);
}

TEST(Measure, BothEndsOverTheDouble) {
  for (const auto operation :
       {MeasurePlan::Operation::write, MeasurePlan::Operation::read, MeasurePlan::Operation::send})
    for (const bool latency : {false, true}) {
      PairOptions options;
      options.both([](TransportOptions& side) { side.limit = Duration{1e6}; });
      Pair pair(options);
      MeasurePlan plan;
      plan.operation = operation;
      plan.latency = latency;
      plan.iterations = 20;
      plan.depth = 4;
      plan.sizes = {Bytes{0}, Bytes{8}, Bytes{100000}};
      Status served;
      std::thread server(
          [&] { served = run_server(pair.b.connection->here(), *pair.b.memory, plan); });
      const auto results = run_client(pair.a.connection->here(), *pair.a.memory, plan);
      server.join();
      ASSERT_TRUE(results.ok()) << results.status().to_string();
      EXPECT_TRUE(served.ok()) << served.to_string();
      ASSERT_EQ(results.value().size(), 3U);
      EXPECT_EQ(results.value()[2].latencies.size(), latency ? 20U : 0U);
      EXPECT_EQ(results.value()[2].average.bytes_per_second > 0, !latency);
    }
}

TEST(Measure, WhatLeavesIsSeenBefore) {
  for (const auto operation : {MeasurePlan::Operation::write, MeasurePlan::Operation::send}) {
    PairOptions options;
    options.both([](TransportOptions& side) { side.limit = Duration{1e6}; });
    Pair pair(options);
    MeasurePlan plan;
    plan.operation = operation;
    plan.iterations = 20;
    plan.depth = 4;
    plan.sizes = {Bytes{1000}};
    std::thread server([&] { (void)run_server(pair.b.connection->here(), *pair.b.memory, plan); });
    std::uint64_t seen = 0;
    const auto results = run_client(pair.a.connection->here(), *pair.a.memory, plan,
                                    [&](memory::DevicePointer, Bytes size) {
                                      seen += size.count;
                                      return Status();
                                    });
    server.join();
    EXPECT_TRUE(results.ok()) << results.status().to_string();
    EXPECT_EQ(seen, 20000U);
  }
}

TEST(Measure, APlanComesBackAndNonsenseIsRefused) {
  MeasurePlan plan;
  plan.latency = true;
  plan.sizes = {Bytes{0}, Bytes{5000000000}};
  auto [a, b] = stream_pair();
  ASSERT_TRUE(send_plan(*a, plan, Duration{1}).ok());
  EXPECT_EQ(receive_plan(*b, Duration{1}).value(), plan);
  const std::vector<std::byte> zeros(64);
  ASSERT_TRUE(a->write_some(zeros).ok());
  EXPECT_EQ(receive_plan(*b, Duration{1}).status().cause(), Cause::protocol);
  auto [c, d] = stream_pair();
  EXPECT_EQ(receive_plan(*d, Duration{0.02}).status().cause(), Cause::timed_out);
}

}  // namespace
}  // namespace gdr::transport
