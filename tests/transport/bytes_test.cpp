// Bytes by mover, as observed, and the necessary flush.
#include <gtest/gtest.h>

#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

constexpr std::size_t size = 3U << 20U;

/// Writes 3 MiB from A to B by `path`, and waits for the arrival.
std::unique_ptr<Pair> transfer(TransportPath path) {
  PairOptions options;
  options.both([&](TransportOptions& side) { side.path = path; });
  auto pair = std::make_unique<Pair>(options);
  const auto from = pair->a.allocate(size);
  const auto to = pair->b.allocate(size);
  const RemoteRange range = pair->share(pair->b, pair->a, 1, to, size);
  EXPECT_TRUE(pair->a.memory->fill(from, 0x5c, Bytes{size}, {}).ok());
  EXPECT_TRUE(
      pair->finish(pair->a, pair->a.connection->write(from, range, Bytes{0}, Bytes{size}, 1))
          .status.ok());
  EXPECT_TRUE(pair->run_until([&] { return pair->b.connection->arrival().has_value(); }));
  return pair;
}

/// Bytes of host memory that one side's copy engine, NIC and kernel touched. The kernel copies
/// between a socket and its packets (a read and a write), and the NIC moves the packets.
std::uint64_t host_passes(const Pair& pair, const End& end, const std::string& nic) {
  const auto moved = end.memory->moved();
  const DmaBytes dma = dma_bytes(*pair.fabric, nic);
  const PathBytes path = end.connection->bytes();
  const std::uint64_t frames = dma.host_read.count + dma.host_written.count;
  return moved.copy_engine_in.count + moved.copy_engine_out.count + frames +
         3 * (path.socket_out.count + path.socket_in.count);
}

TEST(Bytes, GdrMovesNoneThroughHostMemory) {
  const auto pair = transfer(TransportPath::gdr);
  EXPECT_EQ(pair->a.memory->moved(), memory::MoverBytes{});
  EXPECT_EQ(pair->b.memory->moved(), memory::MoverBytes{});
  EXPECT_EQ(dma_bytes(*pair->fabric, "a0"), (DmaBytes{{}, {}, Bytes{size}, {}}))
      << "the NIC read device memory alone";
  EXPECT_EQ(dma_bytes(*pair->fabric, "b0"), (DmaBytes{{}, {}, {}, Bytes{size}}));
  EXPECT_EQ(pair->a.connection->bytes(), (PathBytes{Bytes{size}, {}, {}, {}, {}}));
}

TEST(Bytes, StagedMovesEachTwiceOnEachSide) {
  const auto pair = transfer(TransportPath::staged);
  EXPECT_EQ(pair->a.memory->moved(), (memory::MoverBytes{{}, Bytes{size}, {}, {}}));
  EXPECT_EQ(pair->b.memory->moved(), (memory::MoverBytes{Bytes{size}, {}, {}, {}}));
  EXPECT_EQ(pair->a.connection->bytes().bounce_out, Bytes{size});
  EXPECT_EQ(pair->b.connection->bytes().bounce_in, Bytes{size});
  EXPECT_EQ(dma_bytes(*pair->fabric, "a0").device_read, Bytes{0});
  EXPECT_EQ(dma_bytes(*pair->fabric, "b0").device_written, Bytes{0});
  // 48 chunks of 64 KiB, each with a header of 64 bytes, and a few frames without payload.
  for (const auto& [end, nic] :
       {std::pair<const End*, const char*>{&pair->a, "a0"}, {&pair->b, "b0"}}) {
    const std::uint64_t passes = host_passes(*pair, *end, nic);
    EXPECT_GE(passes, 2 * size);
    EXPECT_LE(passes, 2 * size + std::uint64_t{64} * 100);
  }
}

TEST(Bytes, TcpMovesMore) {
  const auto pair = transfer(TransportPath::tcp);
  EXPECT_EQ(pair->a.memory->moved(), (memory::MoverBytes{{}, Bytes{size}, {}, {}}));
  EXPECT_EQ(pair->b.memory->moved(), (memory::MoverBytes{Bytes{size}, {}, {}, {}}));
  EXPECT_EQ(pair->a.connection->bytes(), (PathBytes{{}, {}, {}, Bytes{size}, {}}));
  EXPECT_EQ(pair->b.connection->bytes(), (PathBytes{{}, {}, {}, {}, Bytes{size}}));
  EXPECT_EQ(host_passes(*pair, pair->a, "a0"), 4 * size);
  EXPECT_EQ(host_passes(*pair, pair->b, "b0"), 4 * size);
}

/// What B's device sees when a write is reported while its reads may be stale.
std::vector<std::uint8_t> seen_by_device(bool flush, unsigned queue_pairs, bool by_send) {
  PairOptions options;
  options.both([&](TransportOptions& side) {
    side.path = TransportPath::gdr;
    side.queue_pairs = queue_pairs;
  });
  options.hide_flush = !flush;
  options.memory([](MemoryChoice& memory) { memory.faults.stale_reads = 0.5; });
  Pair pair(options);
  const auto from = pair.a.allocate(200000);
  const auto to = pair.b.allocate(200000);
  pair.a.put(from, std::vector<std::uint8_t>(200000, 0x99));
  if (by_send) {
    const auto receive = pair.b.connection->receive(to, Bytes{200000});
    EXPECT_TRUE(pair.finish(pair.a, pair.a.connection->send(from, Bytes{200000})).status.ok());
    EXPECT_TRUE(pair.finish(pair.b, receive).status.ok());
  } else {
    const RemoteRange range = pair.share(pair.b, pair.a, 1, to, 200000);
    EXPECT_TRUE(
        pair.finish(pair.a, pair.a.connection->write(from, range, Bytes{0}, Bytes{200000}, 1))
            .status.ok());
    EXPECT_TRUE(pair.run_until([&] { return pair.b.connection->arrival().has_value(); }));
  }
  return pair.b.get(to, 200000);
}

TEST(Flush, WithItTheDeviceSeesWhatArrived) {
  const std::vector<std::uint8_t> all(200000, 0x99);
  for (const unsigned queue_pairs : {1U, 3U})
    for (const bool by_send : {false, true})
      EXPECT_EQ(seen_by_device(true, queue_pairs, by_send), all) << queue_pairs << by_send;
}

TEST(Flush, WithoutItTheDeviceSeesOldBytes) {
  const std::vector<std::uint8_t> all(200000, 0x99);
  for (const unsigned queue_pairs : {1U, 3U})
    for (const bool by_send : {false, true})
      EXPECT_NE(seen_by_device(false, queue_pairs, by_send), all) << queue_pairs << by_send;
}

}  // namespace
}  // namespace gdr::transport
