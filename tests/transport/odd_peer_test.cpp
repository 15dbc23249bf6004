// Peers that send frames out of turn, and memory that is freed and allocated without the
// transport's knowledge.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <random>

#include "src/transport/lanes/frame.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

/// A connection by tcp whose peer is written here, byte by byte.
class OddPeer {
 public:
  OddPeer() {
    TransportOptions options;
    options.path = TransportPath::tcp;
    options.limit = Duration{1};
    options.chunk = Bytes{1024};
    options.log = [](const std::string&) {};
    transport_ = std::make_unique<Transport>(verbs_, memory, options);
    auto streams = stream_pair();
    stream_ = std::move(streams.second);
    connection = transport_->open(std::move(streams.first), false);
    Hello hello;
    hello.offer.best = TransportPath::tcp;
    hello.offer.choice.path = TransportPath::tcp;
    hello.chunk = 1024;
    hello.depth = 8;
    write(put_hello(hello));
    say({.type = FrameType::ready});
    for (int i = 0; i < 100 && !connection->ready(); ++i) step();
  }
  void say(Frame frame, std::size_t payload = 0) {
    frame.payload = static_cast<std::uint32_t>(payload);
    std::vector<std::byte> bytes(frame_header + payload);
    put_frame(std::span<std::byte, frame_header>(bytes.data(), frame_header), frame);
    write(bytes);
  }
  /// One round of the transport, whose result is ignored.
  void step() {
    if (!transport_->progress()) verbs_->idle(100);
    std::array<std::byte, 4096> said;
    (void)stream_->read_some(said);
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) step();
  }
  void only_progress(int count) {
    for (int i = 0; i < count; ++i) (void)transport_->progress();
  }
  RemoteRange share(std::uint64_t size) {
    say({.type = FrameType::share, .address = 0x10000, .total = size, .value = 1});
    steps(20);
    return connection->shared(1).value();
  }
  void leave() { stream_.reset(); }

  std::shared_ptr<DoubleFabric> fabric = make_double_fabric({});
  std::shared_ptr<memory::DeviceMemory> memory = make_memory(MemoryChoice{}, 0);

 private:
  void write(std::span<const std::byte> bytes) {
    for (int i = 0; i < 100 && !bytes.empty(); ++i) {
      const auto count = stream_->write_some(bytes);
      if (!count.ok()) return;
      bytes = bytes.subspan(count.value());
      if (!bytes.empty()) step();
    }
  }
  std::shared_ptr<Verbs> verbs_ = make_double(fabric, {"a0"});
  std::unique_ptr<Transport> transport_;
  std::unique_ptr<ByteStream> stream_;

 public:
  std::unique_ptr<Connection> connection;  // destroyed first
};

TEST(OddPeer, ABodyForAReceiveThatNoSendMet) {
  OddPeer peer;
  const auto to = peer.memory->allocate(Bytes{4096}).value();
  const auto receive = peer.connection->receive(to, Bytes{16});
  ASSERT_TRUE(receive.ok());
  peer.say({.type = FrameType::body, .operation = receive.value().number, .total = 16}, 16);
  peer.steps(50);
  peer.say({.type = FrameType::message, .operation = 1, .total = 16});
  peer.steps(50);
  EXPECT_EQ(peer.connection->status().cause(), Cause::protocol)
      << peer.connection->status().to_string();
}

TEST(OddPeer, AReplyToAReadThatWasNotAskedYet) {
  OddPeer peer;
  const auto from = peer.memory->allocate(Bytes{4U << 20U}).value();
  const RemoteRange range = peer.share(4U << 20U);
  ASSERT_TRUE(peer.connection->write(from, range, Bytes{0}, Bytes{4U << 20U}).ok());
  const auto read = peer.connection->read(from, range, Bytes{0}, Bytes{16});
  ASSERT_TRUE(read.ok());
  peer.only_progress(20);
  peer.say({.type = FrameType::reply, .operation = read.value().number, .total = 16}, 16);
  peer.steps(2000);
  EXPECT_EQ(peer.connection->status().cause(), Cause::protocol)
      << peer.connection->status().to_string();
}

/// Frames of any kind at any time, beside operations of any kind: the connection survives or
/// reports an error.
TEST(OddPeer, FramesAtRandom) {
  for (unsigned seed = 1; seed <= 400; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
    OddPeer peer;
    const auto memory = peer.memory->allocate(Bytes{65536}).value();
    (void)peer.connection->share(1, memory, Bytes{4096});
    const RemoteRange range = peer.share(4096);
    for (int i = 0; i < 60 && peer.connection->status().ok(); ++i) {
      const Bytes size{below(5) == 0 ? 0U : below(4) == 0 ? 2048U : 16U};
      const unsigned what = below(12);
      if (what == 0) (void)peer.connection->receive(memory, size);
      if (what == 1) (void)peer.connection->send(memory, size);
      if (what == 2) (void)peer.connection->write(memory, range, Bytes{0}, size, 3);
      if (what == 3) (void)peer.connection->read(memory, range, Bytes{0}, size);
      if (what == 4) (void)peer.connection->fetch_add(range, Bytes{8}, 1);
      if (what == 5 && below(10) == 0) (void)peer.memory->free(memory);
      Frame frame;
      frame.type = static_cast<FrameType>(2 + below(below(8) == 0 ? 15 : 13));
      frame.flags = static_cast<std::uint8_t>(below(8));
      frame.operation = below(12);
      frame.address = below(3) == 0 ? random() : memory.address + 8U * below(600);
      frame.total = below(5) == 0 ? 0 : below(2) == 0 ? 16 : 2048;
      frame.value = below(3) == 0 ? random() : below(4);
      frame.extra = below(3) == 0 ? random() : below(4);
      std::size_t payload = below(2) == 0 ? 0 : below(64);
      if (carries_data(frame.type)) {
        frame.offset =
            below(2) == 0 || frame.total == 0 ? 0 : below(static_cast<unsigned>(frame.total));
        payload = std::min<std::size_t>(1024, frame.total - frame.offset);
      } else if (frame.type == FrameType::share || frame.type == FrameType::message) {
        payload = 0;
      }
      peer.say(frame, payload);
      peer.steps(static_cast<int>(below(8)));
    }
    peer.steps(50);
    peer.leave();
    peer.only_progress(50);
    EXPECT_FALSE(peer.connection->status().ok()) << "seed " << seed << ": the peer has left";
  }
}

/// As PyTorch's allocator does: memory that it frees through the driver is not reported here, and
/// may be allocated again at the same address.
TEST(ForeignMemory, FreedAndAllocatedAgainAtItsAddress) {
  void* library = dlopen(GDR_STUB_CUDA, RTLD_NOW);
  ASSERT_NE(library, nullptr);
  const auto allocate =
      reinterpret_cast<int (*)(unsigned long long*, std::size_t)>(dlsym(library, "cuMemAlloc_v2"));
  const auto release =
      reinterpret_cast<int (*)(unsigned long long)>(dlsym(library, "cuMemFree_v2"));
  PairOptions options;
  options.memory_a.kind = MemoryChoice::Kind::cuda_stub;
  options.both([](TransportOptions& side) {
    side.path = TransportPath::gdr;
    side.level = NicDistance::sys;
  });
  Pair pair(options);
  const std::size_t size = 1U << 20U;
  const auto to = pair.b.allocate(size);
  const RemoteRange range = pair.share(pair.b, pair.a, 1, to, size);
  const auto write = [&](unsigned long long from, std::size_t bytes) {
    return pair.finish(pair.a, pair.a.connection->write({from}, range, Bytes{0}, Bytes{bytes}, 1))
        .status;
  };
  for (unsigned round = 0; round < 4; ++round) {
    const std::size_t bytes = size - 65536 * round;
    unsigned long long from = 0;
    ASSERT_EQ(allocate(&from, bytes), 0);
    const auto data = End::pattern(bytes, round);
    pair.a.put({from}, data);
    EXPECT_TRUE(write(from, bytes).ok());
    EXPECT_TRUE(pair.b.get(to, bytes) == data) << "round " << round;
    ASSERT_EQ(release(from), 0);
    EXPECT_EQ(write(from, bytes).cause(), Cause::invalid) << "nothing is there";
  }
  dlclose(library);
}

}  // namespace
}  // namespace gdr::transport
