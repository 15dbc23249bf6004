// What goes wrong has a name and comes within its time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "common/error.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

PairOptions with_path(Path path) {
  PairOptions options;
  options.both([&](TransportOptions& side) {
    side.path = path;
    side.limit = Duration{5};
    side.timeout = 10;  // 4.2 ms
  });
  return options;
}

/// A write of 4 MiB that `spoil` gets at when it is under way.
Finished spoiled_write(Pair& pair, const std::function<void(memory::DevicePointer from, memory::DevicePointer to)>& spoil) {
  const auto from = pair.a.allocate(4U << 20U);
  const auto to = pair.b.allocate(4U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4U << 20U);
  const auto operation = pair.a.connection->write(from, range, Bytes{0}, Bytes{4U << 20U}, 1);
  for (int i = 0; i < 3; ++i) pair.step();
  spoil(from, to);
  return pair.finish(pair.a, operation);
}

class EveryWay : public testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, EveryWay, testing::Values(Path::gdr, Path::staged, Path::tcp),
                         [](const testing::TestParamInfo<Path>& path) { return std::string(to_string(path.param)); });

TEST_P(EveryWay, APeerThatClosesIsNamed) {
  Pair pair(with_path(GetParam()));
  const Finished done = spoiled_write(pair, [&](auto, auto) { pair.b.connection->close(); });
  EXPECT_EQ(done.status.cause(), Cause::peer_gone) << done.status.to_string();
  EXPECT_EQ(pair.b.connection->status().cause(), Cause::cancelled);
  EXPECT_EQ(pair.a.connection->write({1}, {}, {}, {}).status().cause(), Cause::peer_gone) << "the connection keeps its cause";
}

TEST_P(EveryWay, MemoryFreedUnderWayIsNamedOnBothSides) {
  {
    Pair pair(with_path(GetParam()));
    const Finished done = spoiled_write(pair, [&](auto from, auto) { ASSERT_TRUE(pair.a.memory->free(from).ok()); });
    EXPECT_EQ(done.status.cause(), Cause::memory_freed) << done.status.to_string();
    EXPECT_TRUE(pair.run_until([&] { return pair.b.connection->status().cause() == Cause::peer_failed; }));
    EXPECT_NE(pair.b.connection->status().text().find("memory_freed"), std::string::npos) << pair.b.connection->status().text();
  }
  Pair pair(with_path(GetParam()));
  const Finished done = spoiled_write(pair, [&](auto, auto to) { ASSERT_TRUE(pair.b.memory->free(to).ok()); });
  EXPECT_TRUE(done.status.cause() == Cause::remote_access || done.status.cause() == Cause::peer_failed ||
              done.status.cause() == Cause::memory_freed)
      << done.status.to_string();
  EXPECT_FALSE(pair.b.connection->arrival().has_value());
}

TEST_P(EveryWay, ARangeThatIsNotSharedIsRefused) {
  Pair pair(with_path(GetParam()));
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
  EXPECT_EQ(pair.a.connection->write(from, range, Bytes{1}, Bytes{4096}).status().cause(), Cause::invalid) << "beyond the range";
  ASSERT_TRUE(pair.b.connection->unshare(1).ok());
  const Finished done = pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
  if (GetParam() == Path::gdr) {
    EXPECT_TRUE(done.status.ok()) << "the key is valid while the NIC has it registered";
  } else {
    EXPECT_EQ(done.status.cause(), Cause::remote_access) << done.status.to_string();
    EXPECT_TRUE(pair.a.connection->status().ok()) << "the connection goes on";
  }
}

TEST_P(EveryWay, TooManyOperationsAreRefused) {
  PairOptions options = with_path(GetParam());
  options.a.operations = 8;
  Pair pair(options);
  const auto from = pair.a.allocate(1U << 20U);
  const auto to = pair.b.allocate(1U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 1U << 20U);
  std::vector<Result<OperationId>> asked;
  for (int i = 0; i < 9; ++i) asked.push_back(pair.a.connection->write(from, range, Bytes{0}, Bytes{1U << 20U}));
  EXPECT_EQ(asked.back().status().cause(), Cause::queue_full);
  asked.pop_back();
  for (const auto& operation : asked) EXPECT_TRUE(pair.finish(pair.a, operation).status.ok());
  EXPECT_TRUE(pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{1})).status.ok()) << "there is room again";
}

TEST_P(EveryWay, AReceiveThatNothingMeetsEndsAlone) {
  Pair pair(with_path(GetParam()));
  const auto to = pair.b.allocate(4096);
  const Duration before = now(*pair.fabric);
  const Finished done = pair.finish(pair.b, pair.b.connection->receive(to, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::timed_out);
  EXPECT_NEAR((now(*pair.fabric) - before).seconds, 5, 0.1);
  EXPECT_TRUE(pair.b.connection->status().ok());
}

TEST_P(EveryWay, ASendThatIsLongerThanItsReceiveIsRefusedOnBothSides) {
  Pair pair(with_path(GetParam()));
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const auto receive = pair.b.connection->receive(to, Bytes{100});
  const Finished sent = pair.finish(pair.a, pair.a.connection->send(from, Bytes{101}));
  EXPECT_EQ(sent.status.cause(), Cause::invalid);
  EXPECT_NE(sent.status.text().find("a send of 101B met a receive of 100B"), std::string::npos) << sent.status.text();
  EXPECT_EQ(pair.finish(pair.b, receive).status.cause(), Cause::invalid);
}

TEST_P(EveryWay, ASendThatNobodyReceivesIsCancelledInTime) {
  Pair pair(with_path(GetParam()));
  const auto from = pair.a.allocate(4096);
  const Duration before = now(*pair.fabric);
  const Finished done = pair.finish(pair.a, pair.a.connection->send(from, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::timed_out) << done.status.to_string();
  EXPECT_NEAR((now(*pair.fabric) - before).seconds, 5, 0.1);
  EXPECT_FALSE(pair.a.connection->status().ok()) << "its memory is no longer in use";
}

TEST(Errors, ASilentPeerIsNoticedByTheRetriesOfTheNic) {
  for (const Path path : {Path::gdr, Path::staged}) {
    PairOptions options = with_path(path);
    options.fabric.faults.deaths = {{"b0", Duration{0.01}}};
    Pair pair(options);
    const auto from = pair.a.allocate(4096);
    const auto to = pair.b.allocate(4096);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
    pair.run_until([&] { return now(*pair.fabric) > Duration{0.02}; });
    const Finished done = pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
    EXPECT_EQ(done.status.cause(), Cause::peer_gone) << done.status.to_string();
    EXPECT_NE(done.status.text().find("does not answer on a0"), std::string::npos) << done.status.text();
    EXPECT_LT(now(*pair.fabric).seconds, 0.1) << "7 times 4.2 ms and a little";
  }
}

TEST(Errors, ALostLinkIsNamedAndAShortOutageSurvived) {
  for (const double length : {0.01, 10.0}) {
    PairOptions options = with_path(Path::gdr);
    options.fabric.faults.outages = {{"a0", Duration{0.01}, Duration{length}}};
    Pair pair(options);
    const auto from = pair.a.allocate(4096);
    const auto to = pair.b.allocate(4096);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
    pair.run_until([&] { return now(*pair.fabric) > Duration{0.011}; });
    const Finished done = pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
    EXPECT_EQ(done.status.cause(), length > 1 ? Cause::link_lost : Cause::ok) << done.status.to_string();
  }
}

TEST(Errors, ChangedBytesAreFoundWhenTheyAreChecked) {
  PairOptions options = with_path(Path::gdr);
  options.fabric.faults.silent_corrupt = 0.05;
  options.both([](TransportOptions& side) { side.check = true; });
  Pair pair(options);
  const Finished done = spoiled_write(pair, [](auto, auto) {});
  EXPECT_EQ(done.status.cause(), Cause::corrupt) << done.status.to_string();
  EXPECT_NE(done.status.text().find("CRC32C"), std::string::npos);
  EXPECT_FALSE(pair.b.connection->arrival().has_value()) << "nobody is told of bytes that are wrong";
}

std::shared_ptr<memory::DeviceMemory> fake_that_refuses(unsigned index, const memory::DeviceFaults& faults) {
  memory::FakeOptions options;
  options.index = index;
  options.capacity = Bytes{64U << 20U};
  options.faults = faults;
  return memory::make_fake_memory(options);
}

TEST(Fallback, AutomaticallyToStagedWithALine) {
  PairOptions options;
  options.both([](TransportOptions& side) { side.nics = {{side.path ? "" : "a0", {}, Distance::pix}}; });
  options.b.nics = {{"b0", {}, Distance::pix}};
  options.memory = [](unsigned index) {
    memory::DeviceFaults faults;
    faults.peer_memory = faults.dma_buf = index != 1;
    return fake_that_refuses(index, faults);
  };
  Pair pair(options);
  EXPECT_EQ(pair.a.connection->path(), Path::staged);
  ASSERT_EQ(pair.a.log.size(), 1U);
  ASSERT_EQ(pair.b.log.size(), 1U);
  EXPECT_EQ(pair.a.log[0].substr(0, 111),
            "GPU Direct RDMA Disabled for GPU fake0 / HCA a0 (distance 1 <= 2), path staged: the peer: fake1 does not regist");
  EXPECT_NE(pair.b.log[0].find("path staged: fake1 does not register with b0: dma-buf: the driver exports no dma-buf; peer memory: b0: "
                               "ibv_reg_mr of 64KiB: Bad address (errno 14)"),
            std::string::npos)
      << pair.b.log[0];
}

TEST(Fallback, AskedForByNameItIsAnError) {
  PairOptions options = with_path(Path::gdr);
  options.memory = [](unsigned index) {
    memory::DeviceFaults faults;
    faults.peer_memory = faults.dma_buf = false;
    return fake_that_refuses(index, faults);
  };
  try {
    Pair pair(options);
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 61), "path gdr was asked for: fake0 does not register with a0: dma-") << error.what();
  }
}

TEST(Fallback, OfOneBufferIsLoggedOrAnError) {
  for (const bool by_name : {false, true}) {
    PairOptions options;
    options.a.nics = {{"a0", {}, Distance::pix}};
    options.b.nics = {{"b0", {}, Distance::pix}};
    if (by_name) options.both([](TransportOptions& side) { side.path = Path::gdr; });
    options.memory = [](unsigned index) {
      memory::DeviceFaults faults;
      if (index == 0) faults.largest_registration = Bytes{1U << 20U};
      return fake_that_refuses(index, faults);
    };
    Pair pair(options);
    EXPECT_EQ(pair.a.connection->path(), Path::gdr);
    const auto large = pair.a.allocate(4U << 20U);
    const auto to = pair.b.allocate(4U << 20U);
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4U << 20U);
    const auto bytes = End::pattern(4U << 20U, 5);
    pair.a.put(large, bytes);
    const Finished done = pair.finish(pair.a, pair.a.connection->write(large, range, Bytes{0}, Bytes{4U << 20U}));
    if (by_name) {
      EXPECT_EQ(done.status.cause(), Cause::registration_refused) << done.status.to_string();
      EXPECT_EQ(pair.a.log.size(), 1U);
      continue;
    }
    EXPECT_TRUE(done.status.ok()) << done.status.to_string();
    EXPECT_EQ(pair.b.get(to, 4U << 20U), bytes);
    ASSERT_EQ(pair.a.log.size(), 2U);
    EXPECT_NE(pair.a.log[1].find("GPU Direct RDMA Disabled for GPU fake0 / HCA a0: write of 4MiB is staged"), std::string::npos)
        << pair.a.log[1];
    // Half of it can be registered alone.
    EXPECT_TRUE(pair.finish(pair.a, pair.a.connection->write(large + Bytes{1U << 20U}, range, Bytes{0}, Bytes{1U << 19U})).status.ok());
    EXPECT_EQ(pair.a.connection->bytes().rdma, Bytes{1U << 19U});
  }
}

TEST(Fallback, ByDistance) {
  for (const Distance distance : {Distance::pxb, Distance::phb}) {
    PairOptions options;
    options.a.nics = {{"a0", {}, distance}};
    options.b.nics = {{"b0", {}, Distance::pix}};
    Pair pair(options);
    EXPECT_EQ(pair.a.connection->path(), distance == Distance::pxb ? Path::gdr : Path::staged);
    EXPECT_NE(pair.a.log[0].find(distance == Distance::pxb
                                     ? "Enabled for GPU fake0 / HCA a0 (distance 2 <= 2), path gdr: dma-buf"
                                     : "Disabled for GPU fake0 / HCA a0 (distance 3 > 2), path staged: PHB is farther than PXB"),
              std::string::npos)
        << pair.a.log[0];
  }
}

TEST(Fallback, SidesThatWantDifferentPathsSayWhich) {
  PairOptions options;
  options.a.path = Path::gdr;
  options.b.path = Path::staged;
  Pair pair(options);
  EXPECT_EQ(pair.b.connection->status().cause(), Cause::invalid);
  EXPECT_EQ(pair.a.connection->status().text(), "the peer refused: invalid: path staged was asked for here and gdr by the peer");
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
    EXPECT_EQ(connection->status().cause(), nonsense ? Cause::protocol : Cause::timed_out) << connection->status().to_string();
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
  EXPECT_EQ(refused([](TransportOptions& o) { o.retries = 7; }), "retries: 7; they are 0 to 6, since 7 means for ever");
  EXPECT_EQ(refused([](TransportOptions& o) { o.gid_index = 9; }).substr(0, 37), "a0: there is no GID index 9; there ar");
  EXPECT_EQ(refused([](TransportOptions& o) { o.nics = {{"mlx5_9", {}, {}}}; }), "there is no RDMA device mlx5_9, or it cannot be opened");
  EXPECT_EQ(refused([](TransportOptions& o) { o.queue_pairs = 0; }), "queue pairs: 0; they are 1 to 64");
}

}  // namespace
}  // namespace gdr::transport
