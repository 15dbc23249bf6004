// Every failure has a name and is reported in time: failures that only the double can cause, or
// that need only one end.
#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "tests/support/transport_pair.hpp"

namespace gdr::transport {
namespace {

TEST(Errors, ASilentPeerIsNoticedByTheRetriesOfTheNic) {
  for (const TransportPath path : {TransportPath::gdr, TransportPath::staged}) {
    PairOptions options = pair_with_path(path);
    options.fabric.faults.deaths = {{"b0", Duration{0.01}}};
    Pair pair(options);
    const auto from = pair.a.allocate(4096);
    const auto to = pair.b.allocate(4096);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
    pair.run_until([&] { return pair.now() > Duration{0.02}; });
    const OperationResult done =
        pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
    EXPECT_EQ(done.status.cause(), Cause::peer_gone) << done.status.to_string();
    EXPECT_NE(done.status.text().find("does not answer on a0"), std::string::npos)
        << done.status.text();
    EXPECT_LT(pair.now().seconds, 0.1) << "7 times 4.2 ms and a little";
  }
}

TEST(Errors, AnAddressThatIsGoneIsNamed) {
  PairOptions options = pair_with_path(TransportPath::gdr);
  options.fabric.faults.lost_addresses = {{"a0", Duration{0.01}}};
  Pair pair(options);
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
  pair.run_until([&] { return pair.now() > Duration{0.011}; });
  const OperationResult done =
      pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::link_lost) << done.status.to_string();
  EXPECT_EQ(done.status.text(),
            "a0: its address 10.0.1.1 is gone from GID index 2 (transport retry counter exceeded)");
}

TEST(Errors, ALostLinkIsNamedAndAShortOutageSurvived) {
  for (const double length : {0.01, 10.0}) {
    PairOptions options = pair_with_path(TransportPath::gdr);
    options.fabric.faults.outages = {{"a0", Duration{0.01}, Duration{length}}};
    Pair pair(options);
    const auto from = pair.a.allocate(4096);
    const auto to = pair.b.allocate(4096);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
    pair.run_until([&] { return pair.now() > Duration{0.011}; });
    const OperationResult done =
        pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
    EXPECT_EQ(done.status.cause(), length > 1 ? Cause::link_lost : Cause::ok)
        << done.status.to_string();
  }
}

TEST(Errors, ChangedBytesAreFoundWhenTheyAreChecked) {
  PairOptions options = pair_with_path(TransportPath::gdr);
  options.fabric.faults.silent_corrupt = 0.05;
  options.both([](TransportOptions& side) { side.check = true; });
  Pair pair(options);
  const OperationResult done = spoiled_write(pair, [](auto, auto) {});
  EXPECT_EQ(done.status.cause(), Cause::corrupt) << done.status.to_string();
  EXPECT_NE(done.status.text().find("CRC32C"), std::string::npos);
  EXPECT_FALSE(pair.b.connection->arrival().has_value())
      << "nobody is told of bytes that are wrong";
}

TEST(SetUp, APeerThatSaysNothingOrNonsenseIsGivenUp) {
  for (const bool nonsense : {false, true}) {
    PairOptions options;
    options.wait_ready = false;
    Pair pair(options);
    auto [mine, theirs] = stream_pair();
    const auto connection = pair.a.transport->open(std::move(mine), true);
    const std::string text = "GET / HTTP/1.1\r\n\r\n";
    if (nonsense) {
      ASSERT_TRUE(theirs->write_some(std::as_bytes(std::span(text))).ok());
    }
    ASSERT_TRUE(pair.run_until([&] { return connection->ready().has_value(); }));
    EXPECT_EQ(connection->status().cause(), nonsense ? Cause::protocol : Cause::timed_out)
        << connection->status().to_string();
  }
}

TEST(SetUp, OptionsOutOfRangeAreRefused) {
  const auto refused = [](const std::function<void(TransportOptions&)>& change) {
    PairOptions options;
    change(options.a);
    try {
      Pair pair(options);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_EQ(refused([](TransportOptions& o) { o.retries = 7; }),
            "retries: 7; they are 0 to 6, since 7 means for ever");
  EXPECT_EQ(refused([](TransportOptions& o) { o.gid_index = 9; }).substr(0, 37),
            "a0: there is no GID index 9; there ar");
  EXPECT_EQ(refused([](TransportOptions& o) {
              o.nics = {{"mlx5_9", {}, {}}};
            }),
            "there is no RDMA device mlx5_9, or it cannot be opened");
  EXPECT_EQ(refused([](TransportOptions& o) { o.queue_pairs = 0; }),
            "queue pairs: 0; they are 1 to 64");
}

}  // namespace
}  // namespace gdr::transport
