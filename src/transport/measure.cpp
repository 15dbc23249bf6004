#include "src/transport/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <thread>

namespace gdr::transport {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::array<std::byte, 4> plan_magic{std::byte{'G'}, std::byte{'D'}, std::byte{'R'},
                                              std::byte{'t'}};
constexpr unsigned most_sizes = 64;
constexpr std::uint64_t inbox_tag = 1;
constexpr std::uint32_t end_of_size = 0xffffffff;

Duration since(Clock::time_point start) {
  return {std::chrono::duration<double>(Clock::now() - start).count()};
}

void put_number(std::vector<std::byte>& bytes, std::uint64_t value, unsigned width) {
  for (unsigned i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}
std::uint64_t number_at(std::span<const std::byte> bytes, std::size_t at, unsigned width) {
  std::uint64_t value = 0;
  for (unsigned i = 0; i < width; ++i)
    value |= static_cast<std::uint64_t>(bytes[at + i]) << (8 * i);
  return value;
}

Status read_all(ByteStream& stream, std::span<std::byte> bytes, Clock::time_point start,
                Duration limit) {
  while (!bytes.empty()) {
    const auto count = stream.read_some(bytes);
    if (!count.ok()) return count.status();
    bytes = bytes.subspan(count.value());
    if (since(start) > limit)
      return {Cause::timed_out, fmt::format("{} did not say what to transfer within {}",
                                            stream.peer(), to_string(limit))};
    if (count.value() == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return {};
}

/// Memory of a run: what is sent, and what the peer writes into.
class Buffers {
 public:
  Buffers(memory::DeviceMemory& memory, const MeasurePlan& plan, BeforeSending before_sending)
      : memory_(memory), before_sending_(std::move(before_sending)) {
    for (const Bytes size : plan.sizes) size_ = std::max(size_, size);
    size_ = std::max(size_, Bytes{8});
    for (auto* pointer : {&out_, &in_}) {
      const auto made = memory.allocate(size_);
      if (!made.ok()) {
        status_ = made.status();
        return;
      }
      *pointer = made.value();
    }
    status_ = memory.fill(*out_, 0x5a, size_, {});
    if (status_.ok()) status_ = memory.synchronize({});
  }
  ~Buffers() {
    for (const auto& pointer : {out_, in_})
      if (pointer) (void)memory_.free(*pointer);
  }
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  [[nodiscard]] const Status& status() const { return status_; }
  [[nodiscard]] memory::DevicePointer out() const { return *out_; }
  [[nodiscard]] memory::DevicePointer in() const { return *in_; }
  [[nodiscard]] Bytes size() const { return size_; }

  Result<OperationId> write(Connection& connection, const RemoteRange& to, Bytes size,
                            std::optional<std::uint32_t> immediate = {}) const {
    if (Status ready = before_sending(size); !ready.ok()) return ready;
    return connection.write(out(), to, Bytes{0}, size, immediate);
  }
  Result<OperationId> send(Connection& connection, Bytes size) const {
    if (Status ready = before_sending(size); !ready.ok()) return ready;
    return connection.send(out(), size);
  }

 private:
  [[nodiscard]] Status before_sending(Bytes size) const {
    return before_sending_ ? before_sending_(out(), size) : Status();
  }

  memory::DeviceMemory& memory_;
  BeforeSending before_sending_;
  Status status_;
  Bytes size_;
  std::optional<memory::DevicePointer> out_;
  std::optional<memory::DevicePointer> in_;
};

Status wait_ok(Connection& connection, const Result<OperationId>& operation) {
  if (!operation.ok()) return operation.status();
  return connection.wait(operation.value()).status;
}

Result<OperationId> ask(Connection& connection, const Buffers& buffers, const RemoteRange& remote,
                        MeasurePlan::Operation operation, Bytes size) {
  switch (operation) {
    case MeasurePlan::Operation::write:
      return buffers.write(connection, remote, size);
    case MeasurePlan::Operation::read:
      return connection.read(buffers.in(), remote, Bytes{0}, size);
    case MeasurePlan::Operation::send:
      break;
  }
  return buffers.send(connection, size);
}

/// Starts `next` `iterations` times, `depth` at once, and calls `ended` as each operation ends.
template <typename Next, typename Ended>
Status keep_asking(Connection& connection, unsigned iterations, unsigned depth, Next next,
                   Ended ended) {
  std::deque<OperationId> waiting;
  for (unsigned asked = 0; asked < iterations || !waiting.empty();) {
    if (asked < iterations && waiting.size() < depth) {
      const Result<OperationId> operation = next();
      if (!operation.ok()) return operation.status();
      waiting.push_back(operation.value());
      ++asked;
      continue;
    }
    const OperationResult finished = connection.wait(waiting.front());
    waiting.pop_front();
    if (!finished.status.ok()) return finished.status;
    ended();
  }
  return {};
}

Result<Measured> bandwidth(Connection& connection, const Buffers& buffers,
                           const RemoteRange& remote, const MeasurePlan& plan, Bytes size) {
  Measured measured{size, plan.iterations, {}, {}, {}};
  std::vector<Duration> ends;
  const auto start = Clock::now();
  const Status status = keep_asking(
      connection, plan.iterations, plan.depth,
      [&] { return ask(connection, buffers, remote, plan.operation, size); },
      [&] { ends.push_back(since(start)); });
  if (!status.ok()) return status;
  measured.average = size * plan.iterations / ends.back();
  measured.peak = measured.average;
  for (std::size_t i = plan.depth; i < ends.size(); ++i)
    measured.peak = std::max(measured.peak, size * plan.depth / (ends[i] - ends[i - plan.depth]));
  return measured;
}

/// A round trip, by the side that starts it. A read is a round trip by itself.
Status ping(Connection& connection, const Buffers& buffers, const RemoteRange& remote,
            MeasurePlan::Operation operation, Bytes size, bool first) {
  if (operation == MeasurePlan::Operation::read)
    return wait_ok(connection, connection.read(buffers.in(), remote, Bytes{0}, size));
  const bool send = operation == MeasurePlan::Operation::send;
  const auto receive =
      send ? connection.receive(buffers.in(), size) : Result<OperationId>(OperationId{});
  const auto take = [&]() -> Status {
    if (send) return wait_ok(connection, receive);
    const auto arrival = connection.wait_arrival();
    return arrival.ok() ? Status() : arrival.status();
  };
  const auto give = [&] {
    return send ? buffers.send(connection, size) : buffers.write(connection, remote, size, 1);
  };
  if (!first)
    if (Status taken = take(); !taken.ok()) return taken;
  const auto given = give();
  if (first)
    if (Status taken = take(); !taken.ok()) return taken;
  return wait_ok(connection, given);
}

Result<Measured> latency(Connection& connection, const Buffers& buffers, const RemoteRange& remote,
                         const MeasurePlan& plan, Bytes size) {
  Measured measured{size, plan.iterations, {}, {}, {}};
  const double directions = plan.operation == MeasurePlan::Operation::read ? 1 : 2;
  for (unsigned i = 0; i < plan.iterations; ++i) {
    const auto start = Clock::now();
    if (Status status = ping(connection, buffers, remote, plan.operation, size, true); !status.ok())
      return status;
    measured.latencies.push_back(since(start) * (1 / directions));
  }
  std::sort(measured.latencies.begin(), measured.latencies.end());
  return measured;
}

Status serve_size(Connection& connection, const Buffers& buffers, const RemoteRange& remote,
                  const MeasurePlan& plan, Bytes size) {
  if (plan.latency && plan.operation != MeasurePlan::Operation::read)
    for (unsigned i = 0; i < plan.iterations; ++i)
      if (Status status = ping(connection, buffers, remote, plan.operation, size, false);
          !status.ok())
        return status;
  if (!plan.latency && plan.operation == MeasurePlan::Operation::send) {
    const Status status = keep_asking(
        connection, plan.iterations, plan.depth,
        [&] { return connection.receive(buffers.in(), size); }, [] {});
    if (!status.ok()) return status;
  }
  // Only wait, as perftest's server does: RDMA needs nothing of this side, and a polling CPU would
  // be missing elsewhere.
  const bool passive = !plan.latency && plan.operation != MeasurePlan::Operation::send &&
                       connection.path() == TransportPath::gdr;
  const Duration nap{passive ? 10e-3 : 0.0};
  for (;;) {
    // The peer may take long over a size: only its connection must stay alive.
    const auto arrival = connection.wait_arrival(nap);
    if (arrival.ok() && arrival.value().immediate == end_of_size) return {};
    if (!arrival.ok() &&
        (arrival.status().cause() != Cause::timed_out || !connection.status().ok()))
      return arrival.status();
  }
}

}  // namespace

Status send_plan(ByteStream& stream, const MeasurePlan& plan, Duration limit) {
  std::vector<std::byte> bytes(plan_magic.begin(), plan_magic.end());
  put_number(bytes, static_cast<std::uint64_t>(plan.operation), 1);
  put_number(bytes, (plan.latency ? 1U : 0U) | (plan.check ? 2U : 0U), 1);
  put_number(bytes, plan.queue_pairs, 2);
  put_number(bytes, plan.iterations, 4);
  put_number(bytes, plan.depth, 4);
  put_number(bytes, plan.sizes.size(), 8);
  for (const Bytes size : plan.sizes) put_number(bytes, size.count, 8);
  const auto start = Clock::now();
  std::span<const std::byte> rest(bytes);
  while (!rest.empty()) {
    const auto count = stream.write_some(rest);
    if (!count.ok()) return count.status();
    rest = rest.subspan(count.value());
    if (since(start) > limit)
      return {Cause::timed_out, fmt::format("{} takes nothing", stream.peer())};
  }
  return {};
}

std::optional<std::size_t> plan_body(std::span<const std::byte, plan_header> header) {
  if (!std::equal(plan_magic.begin(), plan_magic.end(), header.begin())) return std::nullopt;
  const std::uint64_t sizes = number_at(header, 16, 8);
  if (sizes > most_sizes) return std::nullopt;
  return sizes * 8;
}

Result<MeasurePlan> receive_plan(ByteStream& stream, Duration limit) {
  const auto start = Clock::now();
  std::array<std::byte, plan_header> header{};
  if (Status status = read_all(stream, header, start, limit); !status.ok()) return status;
  MeasurePlan plan;
  const auto operation = number_at(header, 4, 1);
  plan.operation = static_cast<MeasurePlan::Operation>(operation);
  plan.latency = (number_at(header, 5, 1) & 1U) != 0;
  plan.check = (number_at(header, 5, 1) & 2U) != 0;
  plan.queue_pairs = static_cast<unsigned>(number_at(header, 6, 2));
  plan.iterations = static_cast<unsigned>(number_at(header, 8, 4));
  plan.depth = static_cast<unsigned>(number_at(header, 12, 4));
  const std::uint64_t sizes = number_at(header, 16, 8);
  const bool right = std::equal(plan_magic.begin(), plan_magic.end(), header.begin()) &&
                     operation <= 2 && plan.queue_pairs >= 1 && plan.queue_pairs <= 64 &&
                     plan.iterations >= 1 && plan.depth >= 1 && plan.depth <= 4096 && sizes >= 1 &&
                     sizes <= most_sizes;
  if (!right)
    return Status(Cause::protocol,
                  fmt::format("{} is not a gdr transfer of this version", stream.peer()));
  std::vector<std::byte> body(sizes * 8);
  if (Status status = read_all(stream, body, start, limit); !status.ok()) return status;
  for (std::size_t i = 0; i < sizes; ++i) plan.sizes.push_back(Bytes{number_at(body, 8 * i, 8)});
  return plan;
}

Result<std::vector<Measured>> run_client(Connection& connection, memory::DeviceMemory& memory,
                                         const MeasurePlan& plan, BeforeSending before_sending) {
  const Buffers buffers(memory, plan, std::move(before_sending));
  if (!buffers.status().ok()) return buffers.status();
  if (Status shared = connection.share(inbox_tag, buffers.in(), buffers.size()); !shared.ok())
    return shared;
  const auto remote = connection.wait_shared(inbox_tag);
  if (!remote.ok()) return remote.status();
  // Register what is sent before anything is measured, as perftest does.
  if (Status ready = wait_ok(connection, buffers.write(connection, remote.value(), Bytes{0}));
      !ready.ok())
    return ready;
  std::vector<Measured> results;
  for (const Bytes size : plan.sizes) {
    auto measured =
        (plan.latency ? latency : bandwidth)(connection, buffers, remote.value(), plan, size);
    if (!measured.ok()) return measured.status();
    results.push_back(std::move(measured.value()));
    if (Status ended =
            wait_ok(connection, buffers.write(connection, remote.value(), Bytes{0}, end_of_size));
        !ended.ok())
      return ended;
  }
  return results;
}

Status run_server(Connection& connection, memory::DeviceMemory& memory, const MeasurePlan& plan,
                  BeforeSending before_sending) {
  const Buffers buffers(memory, plan, std::move(before_sending));
  if (!buffers.status().ok()) return buffers.status();
  if (Status shared = connection.share(inbox_tag, buffers.in(), buffers.size()); !shared.ok())
    return shared;
  const auto remote = connection.wait_shared(inbox_tag);
  if (!remote.ok()) return remote.status();
  for (const Bytes size : plan.sizes)
    if (Status served = serve_size(connection, buffers, remote.value(), plan, size); !served.ok())
      return served;
  return {};
}

}  // namespace gdr::transport
