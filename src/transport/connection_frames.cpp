// What the peer asks for, and what it answers.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/common/error.hpp"
#include "src/transport/connection_core.hpp"

namespace gdr::transport {
namespace {

Status not_shared(const Frame& frame) {
  return {Cause::remote_access, fmt::format("{} at {:#x} are in no range that is shared",
                                            to_string(Bytes{frame.total}), frame.address)};
}

std::string text_of(std::span<const std::byte> payload) {
  return printable(
      {reinterpret_cast<const char*>(payload.data()), std::min<std::size_t>(payload.size(), 200)},
      200);
}

Cause cause_of(std::uint64_t value) {
  return value > static_cast<std::uint64_t>(Cause::ok) &&
                 value <= static_cast<std::uint64_t>(Cause::cancelled)
             ? static_cast<Cause>(value)
             : Cause::peer_failed;
}

}  // namespace

void ConnectionCore::on_frame(Lane& lane, const Frame& frame, unsigned slot) {
  if (state == State::failed) return;
  const bool by_stream = &lane == control_.get();
  if (!by_stream || frame.type == FrameType::ready) state = State::open;
  if (carries_data(frame.type)) return take_data(lane, frame, slot);
  const auto received = lane.received(slot).first(frame.payload);
  const std::vector<std::byte> payload(received.begin(), received.end());
  lane.release(slot);
  on_control(frame, payload, by_stream);
}

void ConnectionCore::on_immediate(std::uint32_t immediate, Bytes size) {
  // Where it landed is not said: everything that the peer may write is flushed.
  if (engine_.flushes)
    for (const auto& [tag, share] : shares_)
      if (Status flushed = flush(share.pointer, share.size); !flushed.ok())
        return fail(flushed, true);
  arrivals.push_back({immediate, size});
}

void ConnectionCore::on_control(const Frame& frame, std::span<const std::byte> payload,
                                bool by_stream) {
  switch (frame.type) {
    case FrameType::share:
      return take_share(frame, payload);
    case FrameType::unshare:
      shared_by_peer.erase(frame.value);
      return;
    case FrameType::get:
      return serve_get(frame);
    case FrameType::message:
      return take_message(frame, payload);
    case FrameType::clear: {
      Operation* operation = operations.find(frame.operation);
      if (operation == nullptr || operation->kind != OperationKind::send ||
          operation->phase != Phase::confirming)
        return fail(
            {Cause::protocol, "the peer said what it must not: room for a send that there is not"},
            true);
      operation->peer_operation = frame.extra;
      operation->direct = false;
      operation->phase = Phase::issuing;
      to_issue_.push_back(frame.operation);
      return;
    }
    case FrameType::atomic:
      return serve_atomic(frame);
    case FrameType::notify:
      return take_notify(frame);
    case FrameType::verify:
      return serve_verify(frame);
    case FrameType::done:
      return take_done(frame, payload);
    case FrameType::abort:
      return fail(
          {Cause::peer_failed, fmt::format("{}: {}: {}", peer_name_,
                                           to_string(cause_of(frame.value)), text_of(payload))},
          false);
    case FrameType::goodbye: {
      peer_closed_ = true;
      if (!by_stream) return;
      // What the peer sent before it closed has arrived; queue pairs are looked at once more.
      for (const auto& lane : lanes_)
        while (state == State::open && lane->poll(*this)) continue;
      return fail({Cause::peer_gone, fmt::format("{} closed the connection", peer_name_)}, false);
    }
    default:
      return;
  }
}

void ConnectionCore::take_share(const Frame& frame, std::span<const std::byte> payload) {
  auto keys = parse_keys(payload);
  if (!keys.ok()) return fail(keys.status(), true);
  if (shared_by_peer.size() >= 65536)
    return fail({Cause::protocol, "the peer said what it must not: more than 65536 shared ranges"},
                true);
  shared_by_peer[frame.value] = {
      {frame.value, frame.address, Bytes{frame.total}},
      std::make_shared<const std::vector<std::uint32_t>>(std::move(keys.value()))};
}

/// Bytes for device memory. The buffer goes back when the copy engine has taken them.
void ConnectionCore::take_data(Lane& lane, const Frame& frame, unsigned slot) {
  std::uint64_t base = frame.address;
  Status refused;
  if (frame.type == FrameType::put) {
    auto [found, fresh] = inbound_.try_emplace(frame.operation);
    Inbound& inbound = found->second;
    if (fresh) {
      inbound.address = frame.address;
      inbound.total = Bytes{frame.total};
      if ((frame.flags & flag_immediate) != 0)
        inbound.immediate = static_cast<std::uint32_t>(frame.value);
      if (share_of(frame.address, frame.total) == nullptr) inbound.refused = not_shared(frame);
    } else if (inbound.address != frame.address || inbound.total.count != frame.total) {
      return fail(
          {Cause::protocol, "the peer said what it must not: a write that changes its place"},
          true);
    }
    refused = inbound.refused;
  } else {
    const Operation* operation = operations.find(frame.operation);
    const OperationKind kind =
        frame.type == FrameType::reply ? OperationKind::read : OperationKind::receive;
    if (operation == nullptr) return lane.release(slot);  // it ended early
    const bool asked =
        operation->kind == kind && operation->phase == Phase::confirming && !operation->direct;
    if (!asked || operation->size.count != frame.total)
      return fail({Cause::protocol, "the peer said what it must not: bytes that nobody asked for"},
                  true);
    base = operation->local.address;
  }
  if (!lanes_.empty()) bytes_.bounce_in.count += frame.payload;
  if (refused.ok() && frame.payload > 0) {
    refused = engine_.memory->copy_in({base + frame.offset}, lane.received(slot).data(),
                                      Bytes{frame.payload}, in_);
    if (refused.ok()) {
      const auto event = engine_.memory->record(in_);
      if (!event.ok()) return fail(event.status(), true);
      copies_in_.push_back({&lane, slot, frame, event.value()});
      return;
    }
    if (frame.type == FrameType::put)
      inbound_[frame.operation].refused = Status(Cause::memory_freed, refused.text());
  }
  lane.release(slot);
  placed(frame);
}

void ConnectionCore::placed(const Frame& frame) {
  if (frame.type == FrameType::put) {
    const auto found = inbound_.find(frame.operation);
    if (found == inbound_.end()) return;
    found->second.placed.count += frame.payload;
    if (found->second.placed < found->second.total) return;
    put_complete(frame.operation, found->second);
    inbound_.erase(frame.operation);
    return;
  }
  Operation* operation = operations.find(frame.operation);
  if (operation == nullptr) return;
  operation->placed.count += frame.payload;
  if (operation->placed == operation->size) moved(frame.operation, *operation);
}

void ConnectionCore::put_complete(std::uint64_t operation, Inbound& inbound) {
  if (inbound.refused.ok() && inbound.immediate)
    arrivals.push_back({*inbound.immediate, inbound.total});
  reply_done(operation, inbound.refused);
}

void ConnectionCore::serve_get(const Frame& frame) {
  if (share_of(frame.address, frame.total) == nullptr)
    return reply_done(frame.operation, not_shared(frame));
  if (operations.under_way() >= 2 * std::size_t{engine_.options.operations})
    return reply_done(frame.operation,
                      {Cause::queue_full,
                       fmt::format("{} operations are not finished yet", operations.under_way())});
  Operation operation;
  operation.kind = OperationKind::serve_read;
  operation.local = {frame.address};
  operation.size = Bytes{frame.total};
  operation.peer_operation = frame.operation;
  to_issue_.push_back(operations.add(std::move(operation)));
}

/// Without RDMA to the memory, this side's engine is what makes it atomic.
void ConnectionCore::serve_atomic(const Frame& frame) {
  if (share_of(frame.address, 8) == nullptr || frame.address % 8 != 0)
    return reply_done(frame.operation, not_shared(frame));
  std::uint64_t old = 0;
  memory::DeviceMemory& memory = *engine_.memory;
  Status done = memory.synchronize(in_);
  if (done.ok()) done = memory.copy_out(&old, {frame.address}, Bytes{8}, in_);
  if (done.ok()) done = memory.synchronize(in_);
  const bool swap = (frame.flags & flag_swap) != 0;
  const std::uint64_t now = swap ? (old == frame.value ? frame.extra : old) : old + frame.value;
  if (done.ok()) done = memory.copy_in({frame.address}, &now, Bytes{8}, in_);
  if (done.ok()) done = memory.synchronize(in_);
  reply_done(frame.operation, done, old);
}

void ConnectionCore::serve_verify(const Frame& frame) {
  if (share_of(frame.address, frame.total) == nullptr)
    return reply_done(frame.operation, not_shared(frame));
  Status right = flush({frame.address}, Bytes{frame.total});
  if (right.ok()) {
    const auto crc = checksum({frame.address}, Bytes{frame.total});
    right =
        !crc.ok() ? crc.status()
        : crc.value() == frame.value
            ? Status()
            : Status(Cause::corrupt, fmt::format("{} at {:#x}: CRC32C {:08x} there, {:08x} here",
                                                 to_string(Bytes{frame.total}), frame.address,
                                                 crc.value(), frame.value));
  }
  if (right.ok() && (frame.flags & flag_immediate) != 0)
    arrivals.push_back({static_cast<std::uint32_t>(frame.extra), Bytes{frame.total}});
  reply_done(frame.operation, right);
}

/// A write over several queue pairs is complete when each of them says so: what comes behind its
/// bytes cannot overtake them.
void ConnectionCore::take_notify(const Frame& frame) {
  if (++notified_[frame.operation] < frame.extra) return;
  notified_.erase(frame.operation);
  on_immediate(static_cast<std::uint32_t>(frame.value), Bytes{frame.total});
  if (state == State::open) reply_done(frame.operation, {});
}

void ConnectionCore::take_message(const Frame& frame, std::span<const std::byte> payload) {
  auto keys = parse_keys(payload);
  if (!keys.ok()) return fail(keys.status(), true);
  if (messages_.size() >= 65536)
    return fail({Cause::protocol,
                 "the peer said what it must not: more than 65536 sends without a receive"},
                true);
  Message message{frame.operation,
                  frame.address,
                  Bytes{frame.total},
                  {},
                  std::make_shared<const std::vector<std::uint32_t>>(std::move(keys.value()))};
  if ((frame.flags & flag_checked) != 0) message.crc = static_cast<std::uint32_t>(frame.value);
  messages_.push_back(std::move(message));
  match_messages();
}

void ConnectionCore::take_done(const Frame& frame, std::span<const std::byte> payload) {
  Operation* found = operations.find(frame.operation);
  if (found == nullptr) return;
  Operation& operation = *found;
  if (frame.value != static_cast<std::uint64_t>(Cause::ok))
    return finish(frame.operation,
                  {cause_of(frame.value),
                   fmt::format("{}: {}: {}", words(operation), peer_name_, text_of(payload))});
  const bool staged_write = operation.kind == OperationKind::write && !operation.direct;
  if (staged_write && engine_.options.check && !operation.verified)
    return confirm(frame.operation, operation);
  finish(frame.operation, {}, frame.extra);
}

}  // namespace gdr::transport
