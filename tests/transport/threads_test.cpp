// One engine, many threads: to be run under TSan.
#include <gtest/gtest.h>

#include <thread>

#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

/// Each side on its own thread, and a third one makes progress.
TEST(Threads, SidesOfTheirOwnAndSeveralWaiters) {
  PairOptions options;
  options.both([](TransportOptions& side) {
    side.path = TransportPath::gdr;
    side.limit = Duration{1e6};  // simulated time runs while a thread is not scheduled
    side.queue_pairs = 2;
  });
  Pair pair(options);
  const auto from = pair.a.allocate(1U << 20U);
  const auto to = pair.b.allocate(1U << 20U);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 1U << 20U);
  pair.a.put(from, End::pattern(1U << 20U, 3));
  constexpr int each = 20;
  const auto write = [&](std::uint64_t part) {
    for (int i = 0; i < each; ++i) {
      const auto operation = pair.a.connection->write(
          from + Bytes{part << 18U}, range, Bytes{part << 18U}, Bytes{std::uint64_t{1} << 18U},
          static_cast<std::uint32_t>(part));
      ASSERT_TRUE(operation.ok());
      EXPECT_TRUE(pair.a.connection->here().wait(operation.value()).status.ok());
    }
  };
  std::vector<std::thread> threads;
  for (std::uint64_t part = 0; part < 3; ++part) threads.emplace_back(write, part);
  threads.emplace_back([&] {
    for (int i = 0; i < 3 * each; ++i) EXPECT_TRUE(pair.b.connection->here().wait_arrival().ok());
  });
  threads.emplace_back([&] {
    // Allocate and free memory meanwhile.
    for (int i = 0; i < 50; ++i)
      EXPECT_TRUE(pair.a.memory->free(pair.a.memory->allocate(Bytes{4096}).value()).ok());
  });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(pair.b.get(to, 3U << 18U), pair.a.get(from, 3U << 18U));
}

}  // namespace
}  // namespace gdr::transport
