// What the transport costs beside bare verbs: 8-byte writes with an immediate, back and forth and
// in a row, over NICs that take no time. This thread runs both sides, so a message's cost is
// everything that its sender and receiver do for it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/instant_verbs.hpp"
#include "src/common/check.hpp"
#include "src/memory/backends.hpp"
#include "src/transport/transport.hpp"

namespace gdr::bench {
namespace {

using namespace transport;
using Clock = std::chrono::steady_clock;

constexpr Bytes message{8};
constexpr unsigned in_a_row = 16;

double nanoseconds(Clock::time_point start, unsigned count) {
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / count;
}

/// A ping-pong with only the verbs that it needs.
class Bare {
 public:
  explicit Bare(const std::shared_ptr<InstantWire>& wire, const std::string& name)
      : verbs_(make_instant_verbs(wire, name)), device_(std::move(verbs_->open(name).value())) {
    const auto address = reinterpret_cast<std::uint64_t>(buffer_.data());
    region_ = std::move(device_->register_memory(address, Bytes{buffer_.size()}, address).value());
    queue_ = std::move(device_->create_completion_queue(256).value());
    pair_ = std::move(device_->create_queue_pair(*queue_, {64, 64}).value());
    for (unsigned i = 0; i < 32; ++i)
      check(pair_->post(ReceiveWork{i, address, region_->local_key(), {}}) == PostResult::posted,
            "post");
  }
  void connect(const Bare& peer) {
    QueuePairRoute route;
    route.peer_queue_pair = peer.pair_->number();
    check(pair_->connect(route).ok(), "connect");
    remote_address_ = reinterpret_cast<std::uint64_t>(peer.buffer_.data());
    remote_key_ = peer.region_->remote_key();
  }
  void write() {
    SendWork work;
    work.id = 1000;
    work.opcode = Opcode::write_with_immediate;
    work.local_address = reinterpret_cast<std::uint64_t>(buffer_.data());
    work.local_key = region_->local_key();
    work.size = message;
    work.remote_address = remote_address_;
    work.remote_key = remote_key_;
    check(pair_->post(work) == PostResult::posted, "post");
  }
  void poll() {
    const std::size_t count = queue_->poll(completions_);
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& completion = completions_[i];
      ++(completion.received ? arrived : done);
      if (completion.received)
        check(pair_->post(ReceiveWork{completion.id, remote_address_, region_->local_key(), {}}) ==
                  PostResult::posted,
              "post");
    }
  }
  unsigned arrived = 0;
  unsigned done = 0;

 private:
  std::vector<std::byte> buffer_ = std::vector<std::byte>(64);
  std::unique_ptr<Verbs> verbs_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<QueuePair> pair_;
  std::array<Completion, 16> completions_;
  std::uint64_t remote_address_ = 0;
  std::uint32_t remote_key_ = 0;
};

class BarePair {
 public:
  BarePair() {
    a_.connect(b_);
    b_.connect(a_);
  }
  void ping() {
    one_way(a_, b_, 1);
    one_way(b_, a_, 1);
  }
  void row() { one_way(a_, b_, in_a_row); }
  void idle() { a_.poll(); }

 private:
  static void one_way(Bare& from, Bare& to, unsigned count) {
    for (unsigned i = 0; i < count; ++i) from.write();
    for (to.arrived = 0; to.arrived < count;) to.poll();
    for (; from.done < count;) from.poll();
    from.done = 0;
  }
  std::shared_ptr<InstantWire> wire_ = make_instant_wire();
  Bare a_{wire_, "a"};
  Bare b_{wire_, "b"};
};

struct Side {
  Side(const std::shared_ptr<InstantWire>& wire, const std::string& name,
       std::unique_ptr<ByteStream> stream, bool initiator)
      : memory(memory::make_memory("fake:0")),
        transport(make_instant_verbs(wire, name), memory, options()) {
    connection = transport.open(std::move(stream), initiator);
    buffer = memory->allocate(Bytes{4096}).value();
  }
  static TransportOptions options() {
    TransportOptions options;
    options.path = TransportPath::gdr;
    options.nics = {{"a", {}, NicDistance::pix}};
    options.log = [](const std::string&) {};
    return options;
  }
  std::shared_ptr<memory::DeviceMemory> memory;
  Transport transport;
  std::unique_ptr<Connection> connection;
  memory::DevicePointer buffer;
  std::vector<OperationId> asked;
};

class TransportPair {
 public:
  TransportPair() {
    auto [to_b, to_a] = stream_pair();
    a_ = std::make_unique<Side>(wire_, "a", std::move(to_b), true);
    b_ = std::make_unique<Side>(wire_, "a", std::move(to_a), false);
    until([&] { return a_->connection->ready() && b_->connection->ready(); });
    check(a_->connection->status().ok() && b_->connection->status().ok(), "the two sides connect");
    for (Side* side : {a_.get(), b_.get()})
      check(side->connection->share(1, side->buffer, Bytes{4096}).ok(), "share");
    until([&] { return a_->connection->shared(1) && b_->connection->shared(1); });
    to_a_ = *b_->connection->shared(1);
    to_b_ = *a_->connection->shared(1);
  }
  void ping() {
    one_way(*a_, *b_, to_b_, 1);
    one_way(*b_, *a_, to_a_, 1);
  }
  void row() { one_way(*a_, *b_, to_b_, in_a_row); }
  void idle() { a_->transport.progress(); }

 private:
  template <typename Holds>
  void until(Holds holds) {
    while (!holds()) {
      a_->transport.progress();
      b_->transport.progress();
    }
  }
  static void one_way(Side& from, Side& to, const RemoteRange& range, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
      from.asked.push_back(from.connection->write(from.buffer, range, Bytes{}, message, i).value());
    for (unsigned arrived = 0; arrived < count;) {
      if (to.connection->arrival()) ++arrived;
      else to.transport.progress();
    }
    for (const OperationId operation : from.asked) {
      auto finished = from.connection->test(operation);
      while (!finished) {
        from.transport.progress();
        finished = from.connection->test(operation);
      }
      check(finished->status.ok(), "a write succeeds");
    }
    from.asked.clear();
  }
  std::shared_ptr<InstantWire> wire_ = make_instant_wire();
  std::unique_ptr<Side> a_;
  std::unique_ptr<Side> b_;
  RemoteRange to_a_;
  RemoteRange to_b_;
};

/// The shortest of many interleaved rounds, in ns per message (or per round of polling). Rounds are
/// so short that some of them run undisturbed even on a machine that is busy.
template <typename Do>
void compare(const std::string& what, unsigned messages, Do measure) {
  BarePair bare;
  TransportPair transport;
  constexpr unsigned times = 200;
  constexpr unsigned rounds = 1500;
  double least_bare = 1e18;
  double least = 1e18;
  for (unsigned round = 0; round < rounds; ++round) {
    auto start = Clock::now();
    for (unsigned i = 0; i < times; ++i) measure(bare);
    least_bare = std::min(least_bare, nanoseconds(start, times * messages));
    start = Clock::now();
    for (unsigned i = 0; i < times; ++i) measure(transport);
    least = std::min(least, nanoseconds(start, times * messages));
  }
  std::fputs(
      fmt::format("{:<34} {:7.1f} ns, bare verbs {:6.1f} ns\n", what, least, least_bare).c_str(),
      stdout);
}

}  // namespace
}  // namespace gdr::bench

int main() {
  using namespace gdr::bench;
  compare("8 B back and forth, per message", 2, [](auto& pair) { pair.ping(); });
  compare("8 B, 16 in a row, per message", in_a_row, [](auto& pair) { pair.row(); });
  compare("nothing to do, per round of polling", 1, [](auto& pair) { pair.idle(); });
}
