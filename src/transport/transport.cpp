#include "src/transport/transport.hpp"

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "src/transport/connection/connection_core.hpp"

namespace gdr::transport {
namespace {

/// Makes progress until `ready` returns a value, or until `limit`: then nullopt.
template <typename Ready>
auto wait_for(ProgressEngine& engine, std::optional<Duration> limit, Ready ready, Duration nap = {})
    -> decltype(ready()) {
  constexpr unsigned rounds_between_looks =
      64;  // at the clock; other threads may wait for the lock that long
  const bool naps = nap.seconds > 0;
  unsigned idle_rounds = 0;
  Duration end;
  std::unique_lock lock(engine.mutex);
  for (unsigned round = 1;; ++round) {
    if (auto result = ready()) return result;
    if (limit && (round == 1 || round % rounds_between_looks == 0 || naps)) {
      const Duration now = engine.verbs->now();
      if (round == 1) end = now + *limit;
      if (now > end) return {};
    }
    const bool any = engine.progress(naps ? 1 : rounds_between_looks);
    idle_rounds = any ? 0 : idle_rounds + 1;
    if (any && round % rounds_between_looks != 0) continue;
    lock.unlock();
    if (naps) std::this_thread::sleep_for(std::chrono::duration<double>(nap.seconds));
    if (any)
      std::this_thread::yield();  // else a thread that never stops would keep the lock from
                                  // others that wait for it
    engine.idle(idle_rounds);
    lock.lock();
  }
}

}  // namespace

Connection::Connection(std::shared_ptr<ProgressEngine> engine, std::unique_ptr<ByteStream> stream,
                       bool initiator)
    : engine_(std::move(engine)),
      core_(std::make_unique<ConnectionCore>(*engine_, std::move(stream), initiator)) {
  const std::lock_guard lock(engine_->mutex);
  engine_->add(*core_);
}

Connection::~Connection() {
  close();
  const std::lock_guard lock(engine_->mutex);
  engine_->remove(*core_);
  core_.reset();
}

std::optional<Status> Connection::ready() {
  const std::lock_guard lock(engine_->mutex);
  if (core_->state() == ConnectionCore::State::setting_up) return std::nullopt;
  return core_->status();
}

Status Connection::wait_ready() {
  return *wait_for(*engine_, {}, [&]() -> std::optional<Status> {
    if (core_->state() == ConnectionCore::State::setting_up) return std::nullopt;
    return core_->status();
  });
}

Status Connection::status() {
  const std::lock_guard lock(engine_->mutex);
  return core_->status();
}

TransportPath Connection::path() {
  const std::lock_guard lock(engine_->mutex);
  return core_->path();
}

PathBytes Connection::bytes() {
  const std::lock_guard lock(engine_->mutex);
  return core_->bytes();
}

Status Connection::share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size) {
  const std::lock_guard lock(engine_->mutex);
  return core_->share(tag, pointer, size);
}

Status Connection::unshare(std::uint64_t tag) {
  const std::lock_guard lock(engine_->mutex);
  return core_->unshare(tag);
}

std::optional<RemoteRange> Connection::shared(std::uint64_t tag) {
  const std::lock_guard lock(engine_->mutex);
  return core_->shared_by_peer(tag);
}

Result<RemoteRange> Connection::wait_shared(std::uint64_t tag) {
  const auto result =
      wait_for(*engine_, engine_->options.limit, [&]() -> std::optional<Result<RemoteRange>> {
        if (const auto found = core_->shared_by_peer(tag)) return Result<RemoteRange>(*found);
        if (core_->state() == ConnectionCore::State::failed)
          return Result<RemoteRange>(core_->status());
        return std::nullopt;
      });
  if (!result)
    return Status(Cause::timed_out, fmt::format("the peer shared nothing with tag {} within {}",
                                                tag, to_string(engine_->options.limit)));
  return *result;
}

namespace {

/// Sets the operation's place at the peer. Cause::invalid when it is beyond the range's end.
Status aim(Operation& operation, const RemoteRange& range, Bytes offset) {
  if (offset > range.size || operation.size.count > range.size.count - offset.count)
    return {Cause::invalid, fmt::format("{} at {} of the peer's range {} are beyond its end, {}",
                                        to_string(operation.size), to_string(offset), range.tag,
                                        to_string(range.size))};
  operation.peer.address = range.address + offset.count;
  operation.peer.tag = range.tag;
  return {};
}

Result<OperationId> begin(ProgressEngine& engine, ConnectionCore& core, Operation&& operation) {
  const std::lock_guard lock(engine.mutex);
  return core.begin(std::move(operation));
}

Result<OperationId> begin_at(ProgressEngine& engine, ConnectionCore& core, Operation&& operation,
                             const RemoteRange& range, Bytes offset) {
  if (Status aimed = aim(operation, range, offset); !aimed.ok()) return aimed;
  return begin(engine, core, std::move(operation));
}

}  // namespace

Result<OperationId> Connection::write(memory::DevicePointer from, const RemoteRange& to,
                                      Bytes offset, Bytes size,
                                      std::optional<std::uint32_t> immediate) {
  return begin_at(*engine_, *core_, {Write{immediate}, {}, from, size}, to, offset);
}

Result<OperationId> Connection::read(memory::DevicePointer to, const RemoteRange& from,
                                     Bytes offset, Bytes size) {
  return begin_at(*engine_, *core_, {Read{}, {}, to, size}, from, offset);
}

Result<OperationId> Connection::send(memory::DevicePointer from, Bytes size) {
  return begin(*engine_, *core_, {Send{}, {}, from, size});
}

Result<OperationId> Connection::receive(memory::DevicePointer to, Bytes room) {
  return begin(*engine_, *core_, {Receive{}, {}, to, room});
}

Result<OperationId> Connection::fetch_add(const RemoteRange& at, Bytes offset,
                                          std::uint64_t operand) {
  return begin_at(*engine_, *core_, {Atomic{false, operand}, {}, {}, Bytes{8}}, at, offset);
}

Result<OperationId> Connection::compare_swap(const RemoteRange& at, Bytes offset,
                                             std::uint64_t expected, std::uint64_t desired) {
  return begin_at(*engine_, *core_, {Atomic{true, expected, desired}, {}, {}, Bytes{8}}, at,
                  offset);
}

std::optional<OperationResult> Connection::test(OperationId operation) {
  const std::lock_guard lock(engine_->mutex);
  return core_->take_result(operation.number);
}

OperationResult Connection::wait(OperationId operation) {
  return *wait_for(*engine_, {}, [&]() -> std::optional<OperationResult> {
    auto result = core_->take_result(operation.number);
    if (!result && !core_->in_progress(operation.number))
      return OperationResult{
          Status(Cause::invalid, fmt::format("there is no operation {}, or its result was taken",
                                             operation.number)),
          {},
          0};
    return result;
  });
}

std::optional<Arrival> Connection::arrival() {
  const std::lock_guard lock(engine_->mutex);
  return core_->take_arrival();
}

Result<Arrival> Connection::wait_arrival(Duration nap) {
  const auto come = [&]() -> std::optional<Result<Arrival>> {
    if (const auto arrival = core_->take_arrival()) return Result<Arrival>(*arrival);
    if (core_->state() == ConnectionCore::State::failed) return Result<Arrival>(core_->status());
    return std::nullopt;
  };
  const auto result = wait_for(*engine_, engine_->options.limit, come, nap);
  if (!result)
    return Status(Cause::timed_out, fmt::format("no write with an immediate came within {}",
                                                to_string(engine_->options.limit)));
  return *result;
}

void Connection::close() {
  constexpr Duration leave{1.0};
  (void)wait_for(*engine_, leave, [&]() -> std::optional<bool> {
    if (core_->state() != ConnectionCore::State::open || core_->drained()) return true;
    return std::nullopt;
  });
  {
    const std::lock_guard lock(engine_->mutex);
    core_->close_now();
  }
  (void)wait_for(*engine_, leave, [&]() -> std::optional<bool> {
    if (core_->gone()) return true;
    return std::nullopt;
  });
}

Transport::Transport(std::shared_ptr<Verbs> verbs, std::shared_ptr<memory::DeviceMemory> memory,
                     const TransportOptions& options)
    : engine_(std::make_shared<ProgressEngine>(std::move(verbs), std::move(memory), options)) {}
Transport::~Transport() = default;

std::unique_ptr<Connection> Transport::open(std::unique_ptr<ByteStream> stream, bool initiator) {
  return std::unique_ptr<Connection>(new Connection(engine_, std::move(stream), initiator));
}

bool Transport::progress() {
  const std::lock_guard lock(engine_->mutex);
  return engine_->progress(16);
}
std::string Transport::nics() const { return engine_->facts.nics; }

}  // namespace gdr::transport
