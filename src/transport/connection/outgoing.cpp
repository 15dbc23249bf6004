#include "src/transport/connection/outgoing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {

/// Checks that the range is in one allocation, and finds what is registered of it.
Status Outgoing::look_up_local(Operation& operation) const {
  const bool registers = path_ == TransportPath::gdr;
  if (registers && engine_.hears_every_free)
    operation.registered = engine_.registrations->find_again(operation.local, operation.size);
  if (operation.registered != nullptr) return {};
  const auto info = find_allocation(*engine_.memory, operation.local, operation.size);
  if (!info.ok()) return info.status();
  if (registers)
    operation.registered =
        engine_.registrations->find(info.value().allocation, operation.local, operation.size);
  return {};
}

Status Outgoing::register_local(Operation& operation) const {
  if (operation.registered != nullptr) return {};
  auto registered = engine_.registrations->get(operation.local, operation.size);
  if (!registered.ok()) return registered.status();
  operation.registered = std::move(registered.value());
  return {};
}

/// RDMA where both ends are registered. Otherwise bounce buffers: an error if gdr was asked for,
/// else a line of the log. A receive learns this when a send meets it.
Status Outgoing::choose_rdma_or_bounce(Operation& operation) {
  if (path_ != TransportPath::gdr || operation.is<Receive>()) return {};
  const bool one_sided = !operation.is<Send>();
  if (one_sided) {
    const auto* range = ranges_.of_peer(operation.peer.tag);
    if (range == nullptr)
      return {Cause::invalid,
              fmt::format("the peer shares no range with tag {}", operation.peer.tag)};
    operation.peer.keys = range->keys;
  }
  const bool reachable = !one_sided || operation.peer.keys->size() == lanes_.queue_pairs();
  const Status local = reachable && !operation.is<Atomic>() ? register_local(operation) : Status();
  if (local.cause() == Cause::invalid) return local;
  operation.by_rdma = reachable && local.ok();
  if (operation.by_rdma) return {};
  const std::string why = reachable ? local.text() : "the peer could not register its range";
  operation.registered.reset();
  if (engine_.options.path == TransportPath::gdr)
    return {Cause::registration_refused,
            fmt::format("path gdr was asked for: {}: {}", describe(operation), why)};
  if (!fallback_logged_)
    engine_.log(fmt::format(
        "GPU Direct RDMA Disabled for GPU {} / HCA {}: {} is staged (and others like it): {}",
        engine_.facts.memory, engine_.facts.nics, describe(operation), why));
  fallback_logged_ = true;
  return {};
}

Result<OperationId> Outgoing::begin(Operation&& operation) {
  if (operations_.under_way() >= engine_.options.operations)
    return Status(Cause::queue_full,
                  fmt::format("{} operations are not finished yet", operations_.under_way()));
  if (operation.is<Atomic>()) {
    if (operation.peer.address % 8 != 0)
      return Status(Cause::invalid, fmt::format("an atomic at {:#x}, which is no multiple of 8",
                                                operation.peer.address));
  } else {
    if (Status local = look_up_local(operation); !local.ok()) return local;
  }
  if (Status chosen = choose_rdma_or_bounce(operation); !chosen.ok()) return chosen;
  const bool receive = operation.is<Receive>();
  operation.phase = receive                ? Phase::waiting
                    : operation.is<Send>() ? Phase::announcing
                                           : Phase::issuing;
  const std::uint64_t number = operations_.add(std::move(operation));
  (receive ? receives_ : to_issue_).push_back(number);
  return OperationId{number};
}

void Outgoing::take_get(const Frame& frame) {
  if (operations_.under_way() >= 2 * std::size_t{engine_.options.operations})
    return control_.add_done(frame.operation,
                             {Cause::queue_full, fmt::format("{} operations are not finished yet",
                                                             operations_.under_way())});
  to_issue_.push_back(operations_.add(
      {ServedRead{frame.operation}, Phase::issuing, {frame.address}, Bytes{frame.total}}));
}

void Outgoing::finish(std::uint64_t number, const Status& status, std::uint64_t old_value) {
  const Operation* operation = operations_.find(number);
  if (operation == nullptr) return;
  if (operation->phase == Phase::issuing || operation->phase == Phase::announcing)
    std::erase(to_issue_, number);
  if (operation->phase == Phase::waiting) std::erase(receives_, number);
  if (const auto* served = std::get_if<ServedRead>(&operation->kind)) {
    if (!status.ok()) control_.add_done(served->peer_read, status);
    return operations_.drop(number);
  }
  const Bytes moved = operation->is<Receive>() ? operation->placed : operation->size;
  operations_.finish(number, {status, status.ok() ? moved : Bytes{}, old_value});
}

void Outgoing::end_all(const Status& why) {
  while (const std::uint64_t number = operations_.oldest()) finish(number, why);
}

Status Outgoing::check_deadlines(Duration now) {
  operations_.set_deadline_of_new(now + engine_.options.limit);
  // All have the same limit: the oldest one reaches it first.
  while (const std::uint64_t number = operations_.oldest()) {
    const Operation& operation = *operations_.find(number);
    if (now <= operation.deadline) break;
    const Status late(Cause::timed_out, fmt::format("{}: not done within {}", describe(operation),
                                                    to_string(engine_.options.limit)));
    if (operation.phase != Phase::waiting) return late;
    finish(number, late);
  }
  return {};
}

std::optional<std::string> Outgoing::user_of(const memory::PointerInfo& allocation) const {
  std::optional<std::string> user;
  operations_.each([&](const Operation& operation) {
    if (!operation.is<Atomic>() && allocation.contains(operation.local)) user = describe(operation);
  });
  return user;
}

void Outgoing::piece_done(std::uint64_t number) {
  Operation* operation = operations_.find(number);
  if (operation == nullptr) return;
  --operation->outstanding;
  if (operation->phase == Phase::moving && operation->outstanding == 0)
    all_pieces_done(number, *operation);
}

void Outgoing::frame_left(std::uint64_t number, const Frame& frame) {
  if (lanes_.queue_pairs() > 0) bounced_bytes_.count += frame.payload;
  piece_done(number);
}

void Outgoing::piece_placed(std::uint64_t number, Bytes size) {
  Operation* operation = operations_.find(number);
  if (operation == nullptr) return;
  operation->placed = operation->placed + size;
  if (operation->placed == operation->size) all_pieces_done(number, *operation);
}

Result<std::optional<memory::DevicePointer>> Outgoing::place_of(const Frame& frame) {
  const Operation* operation = operations_.find(frame.operation);
  if (operation == nullptr) return std::optional<memory::DevicePointer>();
  const bool asked =
      (frame.type == FrameType::reply ? operation->is<Read>() : operation->is<Receive>()) &&
      operation->phase == Phase::confirming && !operation->by_rdma;
  if (!asked || operation->size.count != frame.total)
    return protocol_error("bytes that nobody asked for");
  return std::optional(operation->local + Bytes{frame.offset});
}

/// A receive fetches the bytes by RDMA, or says that they may come as frames.
void Outgoing::receive(Message message) {
  const std::uint64_t number = receives_.front();
  receives_.pop_front();
  Operation& operation = *operations_.find(number);
  Receive& receive = std::get<Receive>(operation.kind);
  receive.peer_send = message.operation;
  receive.crc = message.crc;
  const auto refuse = [&](const Status& why) {
    control_.add_done(message.operation, why);
    finish(number, why);
  };
  if (message.size > operation.size)
    return refuse(
        {Cause::invalid, fmt::format("a send of {} met a receive of {}", to_string(message.size),
                                     to_string(operation.size))});
  operation.size = message.size;
  operation.peer.address = message.address;
  operation.peer.keys = std::move(message.keys);
  operation.by_rdma = path_ == TransportPath::gdr &&
                      operation.peer.keys->size() == lanes_.queue_pairs() &&
                      register_local(operation).ok();
  if (operation.by_rdma) {
    operation.placed = message.size;
    operation.phase = Phase::issuing;
    return to_issue_.push_back(number);
  }
  if (engine_.options.path == TransportPath::gdr)
    return refuse({Cause::registration_refused,
                   fmt::format("path gdr was asked for: the receive of {} cannot be registered",
                               to_string(message.size))});
  operation.phase = Phase::confirming;
  Frame frame;
  frame.type = FrameType::clear;
  frame.operation = message.operation;
  frame.extra = number;
  control_.add(frame);
}

Status Outgoing::take_clear(const Frame& frame) {
  Operation* operation = operations_.find(frame.operation);
  Send* send = operation == nullptr ? nullptr : std::get_if<Send>(&operation->kind);
  if (send == nullptr || operation->phase != Phase::confirming)
    return protocol_error("room for a send that there is not");
  send->peer_receive = frame.extra;
  operation->by_rdma = false;
  operation->phase = Phase::issuing;
  to_issue_.push_back(frame.operation);
  return {};
}

void Outgoing::take_done(const Frame& frame, std::span<const std::byte> payload,
                         const std::string& peer) {
  Operation* operation = operations_.find(frame.operation);
  if (operation == nullptr) return;
  if (frame.value != static_cast<std::uint64_t>(Cause::ok))
    return finish(frame.operation,
                  {parse_cause(frame.value),
                   fmt::format("{}: {}: {}", describe(*operation), peer, parse_text(payload))});
  const Write* write = std::get_if<Write>(&operation->kind);
  if (write != nullptr && !operation->by_rdma && engine_.options.check && !write->verify_sent)
    return confirm(frame.operation, *operation);
  finish(frame.operation, {}, frame.extra);
}

void Outgoing::all_pieces_done(std::uint64_t number, Operation& operation) {
  if (operation.is<ServedRead>()) return finish(number, {});
  if (const auto* atomic = std::get_if<Atomic>(&operation.kind)) {
    RcLane& lane = lanes_.queue_pair(0);
    const std::uint64_t old = lane.result(atomic->slot);
    lane.abandon(atomic->slot);
    return finish(number, {}, old);
  }
  operation.phase = Phase::confirming;
  const auto* receive = std::get_if<Receive>(&operation.kind);
  const bool fetches = receive != nullptr || operation.is<Read>();
  // What left as frames is confirmed by the peer.
  if (!fetches && !operation.by_rdma) return;
  if (fetches && operation.by_rdma)
    if (Status flushed = engine_.flush(operation.local, operation.size); !flushed.ok())
      return finish(number, flushed);
  if (receive != nullptr) return finish_receive(number, operation, *receive);
  confirm(number, operation);
}

void Outgoing::finish_receive(std::uint64_t number, Operation& operation, const Receive& receive) {
  Status right;
  if (receive.crc && engine_.options.check) {
    const auto crc = bounce_.checksum(operation.local, operation.placed);
    if (!crc.ok()) right = crc.status();
    else if (crc.value() != *receive.crc)
      right = Status(Cause::corrupt,
                     fmt::format("send of {}: CRC32C {:08x} here, {:08x} at the sender",
                                 to_string(operation.placed), crc.value(), *receive.crc));
  }
  control_.add_done(receive.peer_send, right);
  finish(number, right);
}

/// What the peer has to say to a write or read: that the bytes are right, that they are complete.
void Outgoing::confirm(std::uint64_t number, Operation& operation) {
  Write* write = std::get_if<Write>(&operation.kind);
  if (engine_.options.check) {
    bool& verify_sent =
        write != nullptr ? write->verify_sent : std::get<Read>(operation.kind).verify_sent;
    if (!verify_sent) {
      verify_sent = true;
      return ask_to_verify(number, operation, write);
    }
  }
  if (write == nullptr || !write->immediate || write->immediate_sent) return finish(number, {});
  write->immediate_sent = true;
  notify(number, operation, *write);
}

void Outgoing::ask_to_verify(std::uint64_t number, const Operation& operation, Write* write) {
  const auto crc = bounce_.checksum(operation.local, operation.size);
  if (!crc.ok()) return finish(number, crc.status());
  Frame frame;
  frame.type = FrameType::verify;
  frame.operation = number;
  frame.address = operation.peer.address;
  frame.total = operation.size.count;
  frame.value = crc.value();
  if (write != nullptr && write->immediate && !write->immediate_sent) {
    frame.flags = flag_immediate;
    frame.extra = *write->immediate;
    write->immediate_sent = true;
  }
  control_.add(frame);
}

/// Each queue pair that carried bytes says so behind them, where it cannot overtake them.
void Outgoing::notify(std::uint64_t number, const Operation& operation, const Write& write) {
  Frame frame;
  frame.type = FrameType::notify;
  frame.operation = number;
  frame.total = operation.size.count;
  frame.value = *write.immediate;
  frame.extra = write.lanes_used.count();
  for (std::size_t lane = 0; lane < lanes_.queue_pairs(); ++lane)
    if (write.lanes_used.test(lane)) control_.add(frame, {}, lane);
}

}  // namespace gdr::transport
