// Every failure has a name and is reported in time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "tests/support/transport_pair.hpp"

namespace gdr::transport {
namespace {

struct Setting {
  TransportPath path;
  MemoryChoice::Kind memory;
};
std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << to_string(setting.path);
}

/// In guests, the tests also run over the fake GPU.
std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const TransportPath path : {TransportPath::gdr, TransportPath::staged, TransportPath::tcp}) {
    all.push_back({path, MemoryChoice::Kind::fake});
    if (in_guests()) all.push_back({path, MemoryChoice::Kind::bar});
  }
  return all;
}

PairOptions with(const Setting& setting) {
  PairOptions options = pair_with_path(setting.path, Duration{in_guests() ? 30.0 : 5.0});
  options.memory([&](MemoryChoice& memory) { memory.kind = setting.memory; });
  return options;
}

/// For an operation that only its limit ends.
constexpr Duration short_limit{2};
PairOptions with_short_limit(const Setting& setting) {
  PairOptions options = with(setting);
  options.both([](TransportOptions& side) { side.limit = short_limit; });
  return options;
}
/// Guests may be slow.
constexpr double lateness(bool guests) { return guests ? 2 : 0.1; }

class EveryWay : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Paths, EveryWay, testing::ValuesIn(settings()),
                         [](const testing::TestParamInfo<Setting>& setting) {
                           return std::string(to_string(setting.param.path)) +
                                  (setting.param.memory == MemoryChoice::Kind::bar ? "_bar" : "");
                         });

TEST_P(EveryWay, APeerThatClosesIsNamed) {
  Pair pair(with(GetParam()));
  const OperationResult done = spoiled_write(pair, [&](auto, auto) { pair.b.connection->close(); });
  EXPECT_EQ(done.status.cause(), Cause::peer_gone) << done.status.to_string();
  EXPECT_EQ(pair.b.connection->status().cause(), Cause::cancelled);
  EXPECT_EQ(pair.a.connection->write({1}, {}, {}, {}).status().cause(), Cause::peer_gone)
      << "the connection keeps its cause";
}

TEST_P(EveryWay, MemoryFreedUnderWayIsNamedOnBothSides) {
  {
    Pair pair(with(GetParam()));
    const OperationResult done =
        spoiled_write(pair, [&](auto from, auto) { ASSERT_TRUE(pair.a.memory->free(from).ok()); });
    EXPECT_EQ(done.status.cause(), Cause::memory_freed) << done.status.to_string();
    EXPECT_TRUE(
        pair.run_until([&] { return pair.b.connection->status().cause() == Cause::peer_failed; }));
    EXPECT_NE(pair.b.connection->status().text().find("memory_freed"), std::string::npos)
        << pair.b.connection->status().text();
  }
  Pair pair(with(GetParam()));
  const OperationResult done =
      spoiled_write(pair, [&](auto, auto to) { ASSERT_TRUE(pair.b.memory->free(to).ok()); });
  EXPECT_TRUE(done.status.cause() == Cause::remote_access ||
              done.status.cause() == Cause::peer_failed ||
              done.status.cause() == Cause::memory_freed)
      << done.status.to_string();
  EXPECT_FALSE(pair.b.connection->arrival().has_value());
}

TEST_P(EveryWay, ARangeThatIsNotSharedIsRefused) {
  Pair pair(with(GetParam()));
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
  EXPECT_EQ(pair.a.connection->write(from, range, Bytes{1}, Bytes{4096}).status().cause(),
            Cause::invalid)
      << "beyond the range";
  ASSERT_TRUE(pair.b.connection->unshare(1).ok());
  const OperationResult done =
      pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
  if (GetParam().path == TransportPath::gdr) {
    // The key is valid while the NIC has it registered; or A already knows that the range is gone.
    EXPECT_TRUE(done.status.ok() || done.status.cause() == Cause::invalid)
        << done.status.to_string();
  } else {
    EXPECT_EQ(done.status.cause(), Cause::remote_access) << done.status.to_string();
    EXPECT_TRUE(pair.a.connection->status().ok()) << "the connection goes on";
  }
}

TEST_P(EveryWay, TooManyOperationsAreRefused) {
  PairOptions options = with(GetParam());
  options.a.operations = 8;
  Pair pair(options);
  const auto from = pair.a.allocate(1U << 20U);
  const auto to = pair.b.allocate(1U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 1U << 20U);
  std::vector<Result<OperationId>> asked;
  for (int i = 0; i < 9; ++i)
    asked.push_back(pair.a.connection->write(from, range, Bytes{0}, Bytes{1U << 20U}));
  EXPECT_EQ(asked.back().status().cause(), Cause::queue_full);
  asked.pop_back();
  for (const auto& operation : asked) EXPECT_TRUE(pair.finish(pair.a, operation).status.ok());
  EXPECT_TRUE(
      pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{1})).status.ok())
      << "there is room again";
}

TEST_P(EveryWay, AReceiveThatNothingMeetsEndsAlone) {
  Pair pair(with_short_limit(GetParam()));
  const auto to = pair.b.allocate(4096);
  const Duration before = pair.now();
  const OperationResult done = pair.finish(pair.b, pair.b.connection->receive(to, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::timed_out);
  EXPECT_NEAR((pair.now() - before).seconds, short_limit.seconds, lateness(in_guests()));
  EXPECT_TRUE(pair.b.connection->status().ok());
}

TEST_P(EveryWay, ASendThatIsLongerThanItsReceiveIsRefusedOnBothSides) {
  Pair pair(with(GetParam()));
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const auto receive = pair.b.connection->receive(to, Bytes{100});
  const OperationResult sent = pair.finish(pair.a, pair.a.connection->send(from, Bytes{101}));
  EXPECT_EQ(sent.status.cause(), Cause::invalid);
  EXPECT_NE(sent.status.text().find("a send of 101B met a receive of 100B"), std::string::npos)
      << sent.status.text();
  EXPECT_EQ(pair.finish(pair.b, receive).status.cause(), Cause::invalid);
}

TEST_P(EveryWay, ASendThatNobodyReceivesIsCancelledInTime) {
  Pair pair(with_short_limit(GetParam()));
  const auto from = pair.a.allocate(4096);
  const Duration before = pair.now();
  const OperationResult done = pair.finish(pair.a, pair.a.connection->send(from, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::timed_out) << done.status.to_string();
  EXPECT_NEAR((pair.now() - before).seconds, short_limit.seconds, lateness(in_guests()));
  EXPECT_FALSE(pair.a.connection->status().ok()) << "its memory is no longer in use";
}

void never_registers(MemoryChoice& memory) {
  memory.faults.peer_memory = memory.faults.dma_buf = false;
}
std::vector<NicChoice> near(const std::string& nic) { return {{nic, {}, NicDistance::pix}}; }

TEST(Fallback, AutomaticallyToStagedWithALine) {
  PairOptions options;
  options.a.nics = near("a0");
  options.b.nics = near("b0");
  never_registers(options.memory_b);
  Pair pair(options);
  EXPECT_EQ(pair.a.connection->path(), TransportPath::staged);
  const auto log_a = pair.a.log();
  const auto log_b = pair.b.log();
  ASSERT_EQ(log_a.size(), 1U);
  ASSERT_EQ(log_b.size(), 1U);
  const std::string wanted_a = fmt::format(
      "GPU Direct RDMA Disabled for GPU fake0 / HCA {} (distance 1 <= 2), path staged: the peer: "
      "fake1 does not regist",
      nic_name("a0"));
  EXPECT_EQ(log_a[0].substr(0, wanted_a.size()), wanted_a);
  const std::string wanted_b = fmt::format(
      "path staged: fake1 does not register with {0}: dma-buf: the driver exports no dma-buf; peer "
      "memory: {0}: ibv_reg_mr of 64KiB: Bad "
      "address (errno 14)",
      nic_name("b0"));
  EXPECT_NE(log_b[0].find(wanted_b), std::string::npos) << log_b[0];
}

TEST(Fallback, AskedForByNameItIsAnError) {
  PairOptions options = with({TransportPath::gdr, MemoryChoice::Kind::fake});
  options.memory(never_registers);
  try {
    Pair pair(options);
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with(
                "registration_refused: path gdr was asked for: fake0 does not register with " +
                nic_name("a0") + ": dma-"))
        << error.what();
  }
}

TEST(Fallback, OfOneBufferIsLoggedOrAnError) {
  for (const bool by_name : {false, true}) {
    PairOptions options;
    options.a.nics = near("a0");
    options.b.nics = near("b0");
    if (by_name) options.both([](TransportOptions& side) { side.path = TransportPath::gdr; });
    options.memory_a.faults.largest_registration = Bytes{1U << 20U};
    Pair pair(options);
    EXPECT_EQ(pair.a.connection->path(), TransportPath::gdr);
    const auto large = pair.a.allocate(4U << 20U);
    const auto to = pair.b.allocate(4U << 20U);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4U << 20U);
    const auto bytes = End::pattern(4U << 20U, 5);
    pair.a.put(large, bytes);
    const OperationResult done =
        pair.finish(pair.a, pair.a.connection->write(large, range, Bytes{0}, Bytes{4U << 20U}));
    const auto log = pair.a.log();
    if (by_name) {
      EXPECT_EQ(done.status.cause(), Cause::registration_refused) << done.status.to_string();
      EXPECT_EQ(log.size(), 1U);
      continue;
    }
    EXPECT_TRUE(done.status.ok()) << done.status.to_string();
    EXPECT_EQ(pair.b.get(to, 4U << 20U), bytes);
    ASSERT_EQ(log.size(), 2U);
    const std::string wanted = fmt::format(
        "GPU Direct RDMA Disabled for GPU fake0 / HCA {}: write of 4MiB is staged", nic_name("a0"));
    EXPECT_NE(log[1].find(wanted), std::string::npos) << log[1];
    // Half of it can be registered alone.
    EXPECT_TRUE(pair.finish(pair.a, pair.a.connection->write(large + Bytes{1U << 20U}, range,
                                                             Bytes{0}, Bytes{1U << 19U}))
                    .status.ok());
    EXPECT_EQ(pair.a.connection->bytes().rdma, Bytes{1U << 19U});
  }
}

TEST(Fallback, ByDistance) {
  for (const NicDistance distance : {NicDistance::pxb, NicDistance::phb}) {
    PairOptions options;
    options.a.nics = {{"a0", {}, distance}};
    options.b.nics = near("b0");
    Pair pair(options);
    EXPECT_EQ(pair.a.connection->path(),
              distance == NicDistance::pxb ? TransportPath::gdr : TransportPath::staged);
    const std::string line = pair.a.log()[0];
    const std::string wanted =
        distance == NicDistance::pxb
            ? "Enabled for GPU fake0 / HCA {} (distance 2 <= 2), path gdr: "
            : "Disabled for GPU fake0 / HCA {} (distance 3 > 2), path staged: PHB is farther";
    EXPECT_NE(line.find(fmt::format(fmt::runtime(wanted), nic_name("a0"))), std::string::npos)
        << line;
  }
}

TEST(Connections, ManyOfOnePairOfTransports) {
  PairOptions options = with({TransportPath::gdr, MemoryChoice::Kind::fake});
  options.both([](TransportOptions& side) { side.depth = 2; });
  Pair pair(options);
  constexpr std::size_t count = 24;
  constexpr std::size_t size = 10000;
  const auto from = pair.a.allocate(count * size);
  const auto to = pair.b.allocate(count * size);
  const auto bytes = End::pattern(count * size, 8);
  pair.a.put(from, bytes);
  std::vector<std::pair<std::unique_ptr<EndConnection>, std::unique_ptr<EndConnection>>>
      connections;
  for (std::size_t i = 0; i < count; ++i) connections.push_back(pair.connect());
  std::vector<Result<OperationId>> writes;
  for (std::size_t i = 0; i < count; ++i) {
    auto& [a, b] = connections[i];
    ASSERT_TRUE(pair.run_until([&] { return a->ready().has_value() && b->ready().has_value(); }));
    ASSERT_TRUE(b->share(1, to, Bytes{count * size}).ok());
    ASSERT_TRUE(pair.run_until([&] { return a->shared(1).has_value(); }));
    writes.push_back(a->write(from + Bytes{i * size}, *a->shared(1), Bytes{i * size}, Bytes{size},
                              static_cast<std::uint32_t>(i)));
  }
  for (std::size_t i = 0; i < count; ++i) {
    auto& [a, b] = connections[i];
    ASSERT_TRUE(writes[i].ok());
    std::optional<OperationResult> done;
    ASSERT_TRUE(pair.run_until([&] { return (done = a->test(writes[i].value())).has_value(); }));
    EXPECT_TRUE(done->status.ok()) << done->status.to_string();
    std::optional<Arrival> arrival;
    ASSERT_TRUE(pair.run_until([&] { return (arrival = b->arrival()).has_value(); }));
    EXPECT_EQ(arrival->immediate, i);
  }
  EXPECT_EQ(pair.b.get(to, count * size), bytes);
}

/// Memory allocated in place of freed memory is registered anew: a stale registration would move
/// the old pages.
TEST_P(EveryWay, MemoryInThePlaceOfFreedMemoryIsTheOneThatMoves) {
  Pair pair(with(GetParam()));
  constexpr std::size_t size = 200000;
  for (unsigned round = 0; round < 4; ++round) {
    const auto from = pair.a.allocate(size);
    const auto to = pair.b.allocate(size);
    const RemoteRange range = pair.share(pair.b, pair.a, round, to, size);
    const auto bytes = End::pattern(size, 20 + round);
    pair.a.put(from, bytes);
    const OperationResult done =
        pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{size}, round));
    ASSERT_TRUE(done.status.ok()) << done.status.to_string();
    ASSERT_TRUE(pair.run_until([&] { return pair.b.connection->arrival().has_value(); }));
    EXPECT_EQ(pair.b.get(to, size), bytes);
    ASSERT_TRUE(pair.a.memory->free(from).ok());
    ASSERT_TRUE(pair.b.memory->free(to).ok());
  }
  EXPECT_TRUE(pair.a.connection->status().ok());
}

TEST(Fallback, SidesThatWantDifferentPathsSayWhich) {
  PairOptions options;
  options.a.path = TransportPath::gdr;
  options.b.path = TransportPath::staged;
  Pair pair(options);
  EXPECT_EQ(pair.b.connection->status().cause(), Cause::invalid);
  EXPECT_EQ(pair.a.connection->status().text(),
            "the peer refused: invalid: path staged was asked for here and gdr by the peer");
}

}  // namespace
}  // namespace gdr::transport
