// What only guests have: a GID table that changes, a kernel that refuses registration.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/transport/guests/agent.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

/// Runs one command now, and another that undoes it at the end of the test, whatever happens.
class Undo {
 public:
  Undo(const std::string& command, std::string undo) : undo_(std::move(undo)) {
    EXPECT_EQ(run_here(command), "");
  }
  ~Undo() { EXPECT_EQ(run_here(undo_), ""); }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

 private:
  std::string undo_;
};

PairOptions by_name(TransportPath path, MemoryChoice::Kind kind) {
  PairOptions options;
  options.both([&](TransportOptions& side) { side.path = path; });
  options.memory([&](MemoryChoice& memory) { memory.kind = kind; });
  return options;
}

TEST(Gids, AnIndexThatIsNotThereIsRefusedWithThoseThatAre) {
  PairOptions options = by_name(TransportPath::gdr, MemoryChoice::Kind::bar);
  options.a.gid_index = 200;
  try {
    const Pair pair(options);
    FAIL() << "no error";
  } catch (const InputError& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.starts_with("rxe0: there is no GID index 200; there are: 0 RoCEv2 ")) << text;
    EXPECT_NE(text.find(std::getenv("GDR_NIC_0")), std::string::npos) << text;
  }
}

/// The link-local entry carries bytes as well as the IPv4 one.
TEST(Gids, AnotherEntryCarriesBytes) {
  PairOptions options = by_name(TransportPath::gdr, MemoryChoice::Kind::bar);
  options.both([](TransportOptions& side) { side.gid_index = 0; });
  Pair pair(options);
  const auto from = pair.a.allocate(100000);
  const auto to = pair.b.allocate(100000);
  const auto bytes = End::pattern(100000, 1);
  pair.a.put(from, bytes);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 100000);
  ASSERT_TRUE(pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{100000}))
                  .status.ok());
  EXPECT_EQ(pair.b.get(to, 100000), bytes);
}

class GidsOfPath : public testing::TestWithParam<TransportPath> {};
INSTANTIATE_TEST_SUITE_P(Paths, GidsOfPath,
                         testing::Values(TransportPath::gdr, TransportPath::staged),
                         [](const testing::TestParamInfo<TransportPath>& path) {
                           return std::string(to_string(path.param));
                         });

TEST_P(GidsOfPath, OneThatVanishesMidwayIsNamedInTime) {
  PairOptions options = by_name(GetParam(), MemoryChoice::Kind::bar);
  options.nics_a = options.nics_b = {"x1"};
  options.set_up_over_management = true;
  options.both([](TransportOptions& side) { side.timeout = 16; });
  Pair pair(options);
  ASSERT_TRUE(pair.a.connection->status().ok()) << pair.a.connection->status().to_string();
  const auto from = pair.a.allocate(4096);
  const auto to = pair.b.allocate(4096);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 4096);
  ASSERT_TRUE(pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}))
                  .status.ok());
  const std::string address = std::getenv("GDR_NIC_1");
  const Undo gone(fmt::format("/sbin/ip address del {}/24 dev nic1", address),
                  fmt::format("/sbin/ip address add {}/24 dev nic1", address));
  const Duration asked = pair.now();
  const OperationResult done =
      pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{4096}));
  EXPECT_EQ(done.status.cause(), Cause::link_lost) << done.status.to_string();
  EXPECT_NE(
      done.status.text().find(fmt::format("rxe1: its address {} is gone from GID index", address)),
      std::string::npos)
      << done.status.text();
  // (1 + 6) times 0.27 s by the queue pair's attributes; rdma_rxe in a slow guest takes its time.
  EXPECT_LT((pair.now() - asked).seconds, 15);
  EXPECT_TRUE(
      pair.run_until([&] { return pair.b.connection->status().cause() == Cause::peer_failed; }));
  EXPECT_NE(pair.b.connection->status().text().find("is gone from GID index"), std::string::npos)
      << pair.b.connection->status().text();
}

TEST(Refused, ByTheKernelItIsStagedAndLogged) {
  const Undo refused("echo 'gpu0-nic0 by the test' >/dev/gdr-refusals",
                     "echo none >/dev/gdr-refusals");
  PairOptions options;
  options.memory([](MemoryChoice& memory) { memory.kind = MemoryChoice::Kind::bar; });
  Pair pair(options);
  EXPECT_EQ(pair.a.connection->path(), TransportPath::staged);
  ASSERT_EQ(pair.a.log().size(), 1U);
  const std::string line = pair.a.log()[0];
  EXPECT_TRUE(
      line.starts_with("GPU Direct RDMA Disabled for GPU bar0 / HCA rxe0 (distance 1 <= 2), path "
                       "staged: bar0 does not register with rxe0: "))
      << line;
  EXPECT_NE(line.find("ibv_reg_mr of 4KiB: Bad address (errno 14)"), std::string::npos) << line;
  EXPECT_NE(pair.b.log().at(0).find("path staged: the peer: bar0 does not register with rxe0"),
            std::string::npos)
      << pair.b.log()[0];
  const auto from = pair.a.allocate(50000);
  const auto to = pair.b.allocate(50000);
  const auto bytes = End::pattern(50000, 4);
  pair.a.put(from, bytes);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 50000);
  ASSERT_TRUE(pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{50000}, 1))
                  .status.ok());
  EXPECT_EQ(pair.b.get(to, 50000), bytes);
  EXPECT_EQ(pair.a.connection->bytes().bounce_out, Bytes{50000});
}

TEST(Refused, ByTheKernelAndAskedForByNameItIsAnError) {
  const Undo refused("echo 'gpu0-nic0 by the test' >/dev/gdr-refusals",
                     "echo none >/dev/gdr-refusals");
  try {
    const Pair pair(by_name(TransportPath::gdr, MemoryChoice::Kind::bar));
    FAIL() << "no error";
  } catch (const InputError& error) {
    EXPECT_TRUE(
        std::string(error.what())
            .starts_with(
                "registration_refused: path gdr was asked for: bar0 does not register with rxe0: "))
        << error.what();
  }
}

/// Beyond the trial registration: one buffer alone.
TEST(Refused, ForLargeBuffersTheseAloneAreStaged) {
  const Undo refused("echo 'gpu0-nic0,above=1048576 by the test' >/dev/gdr-refusals",
                     "echo none >/dev/gdr-refusals");
  PairOptions options;
  options.memory([](MemoryChoice& memory) { memory.kind = MemoryChoice::Kind::bar; });
  Pair pair(options);
  EXPECT_EQ(pair.a.connection->path(), TransportPath::gdr) << "by the distance that /sys says";
  const auto large = pair.a.allocate(2U << 20U);
  const auto small = pair.a.allocate(1U << 20U);
  const auto to = pair.b.allocate(2U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 2U << 20U);
  EXPECT_TRUE(
      pair.finish(pair.a, pair.a.connection->write(small, range, Bytes{0}, Bytes{1U << 20U}))
          .status.ok());
  EXPECT_EQ(pair.a.connection->bytes(), (PathBytes{Bytes{1U << 20U}, {}, {}, {}, {}}));
  const auto bytes = End::pattern(2U << 20U, 6);
  pair.a.put(large, bytes);
  EXPECT_TRUE(
      pair.finish(pair.a, pair.a.connection->write(large, range, Bytes{0}, Bytes{2U << 20U}))
          .status.ok());
  EXPECT_EQ(pair.b.get(to, 2U << 20U), bytes);
  EXPECT_EQ(pair.a.connection->bytes().bounce_out, Bytes{2U << 20U});
  ASSERT_EQ(pair.a.log().size(), 2U);
  EXPECT_NE(pair.a.log()[1].find("write of 2MiB is staged"), std::string::npos) << pair.a.log()[1];
}

/// Bytes by mover as the fake GPU itself saw them.
TEST(Bytes, TheNicMovesEachOnceAndTheCopyEngineNone) {
  Pair pair(by_name(TransportPath::gdr, MemoryChoice::Kind::bar));
  constexpr std::size_t size = 3U << 20U;
  const auto from = pair.a.allocate(size);
  const auto to = pair.b.allocate(size);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, size);
  ASSERT_TRUE(pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{size}, 1))
                  .status.ok());
  ASSERT_TRUE(pair.run_until([&] { return pair.b.connection->arrival().has_value(); }));
  EXPECT_EQ(pair.a.memory->moved(), memory::MoverBytes{});
  EXPECT_EQ(pair.b.memory->moved(), memory::MoverBytes{});
  EXPECT_EQ(pair.a.connection->bytes(), (PathBytes{Bytes{size}, {}, {}, {}, {}}));
}

}  // namespace
}  // namespace gdr::transport
