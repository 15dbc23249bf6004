#include "src/transport/connection/outgoing.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {

/// Checks that the range is in one allocation, and finds its registration.
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

/// Chooses RDMA where both ends are registered, else bounce buffers: that is an error if gdr was
/// asked for, otherwise it is logged. For a receive this is decided when a send meets it.
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
      return Status(Cause::invalid, fmt::format("an atomic at {:#x}, which is not a multiple of 8",
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
  // All have the same limit, so the oldest one reaches it first.
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

/// A receive fetches the bytes by RDMA, or allows the peer to send them as frames.
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
    return protocol_error("room for an unknown send");
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
  // The peer confirms what left as frames.
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

/// What the peer must confirm of a write or read: that the bytes are right, that they are complete.
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

/// Each queue pair that carried bytes sends a notify behind them, which cannot overtake them.
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

// How operations leave: as RDMA work requests, or as frames through bounce buffers.

Status Outgoing::issue(bool& any) {
  while (!to_issue_.empty()) {
    const std::uint64_t number = to_issue_.front();
    Operation* operation = operations_.find(number);
    const unsigned pieces = operation->pieces;
    const Issued issued = issue_one(number, *operation);
    if (issued == Issued::broken) return broken_;
    operation = operations_.find(number);
    const bool all = issued == Issued::all;
    any = any || all || (operation != nullptr && operation->pieces != pieces);
    if (!all) break;  // those behind it wait
    // An operation that has ended is out of the queue already.
    if (!to_issue_.empty() && to_issue_.front() == number) to_issue_.pop_front();
    if (operation != nullptr && operation->phase == Phase::moving && operation->outstanding == 0)
      all_pieces_done(number, *operation);
  }
  return {};
}

Outgoing::Issued Outgoing::issue_one(std::uint64_t number, Operation& operation) {
  if (operation.phase == Phase::announcing) return announce_send(number, operation);
  if (auto* atomic = std::get_if<Atomic>(&operation.kind))
    return issue_atomic(number, operation, *atomic);
  if (operation.by_rdma) return issue_rdma(number, operation);
  if (operation.is<Read>()) return ask_for_read(number, operation);
  return issue_frames(number, operation);
}

Outgoing::Issued Outgoing::broken(const Operation& operation) {
  broken_ = {Cause::device_failed,
             fmt::format("{}: the queue pair takes no work", describe(operation))};
  return Issued::broken;
}

/// One piece per queue pair if the size allows it, and more where a piece exceeds the NIC's largest
/// message.
Bytes Outgoing::largest_piece(Bytes size) const {
  const std::size_t count = lanes_.queue_pairs();
  std::uint64_t piece = engine_.options.largest_message.count;
  for (std::size_t i = 0; i < count; ++i)
    piece = std::min(piece, engine_.nics[lanes_.queue_pair(i).nic()].port.largest_message.count);
  if (count > 1) {
    const std::uint64_t share = (size.count + count - 1) / count;
    piece = std::min(piece, std::max<std::uint64_t>((share + 4095) / 4096 * 4096, 4096));
  }
  return Bytes{piece};
}

Outgoing::Issued Outgoing::issue_rdma(std::uint64_t number, Operation& operation) {
  const Bytes piece = largest_piece(operation.size);
  while (operation.issued < operation.size || operation.pieces == 0) {
    const Bytes size{std::min(piece.count, operation.size.count - operation.issued.count)};
    const bool last = operation.issued + size == operation.size;
    const PostResult result = post_piece(number, operation, size, last);
    if (result == PostResult::full) return Issued::blocked;
    if (result == PostResult::refused) return broken(operation);
    ++operation.pieces;
    ++operation.outstanding;
    operation.issued = operation.issued + size;
    rdma_bytes_ = rdma_bytes_ + size;
    lanes_.advance();
  }
  operation.phase = Phase::moving;
  return Issued::all;
}

PostResult Outgoing::post_piece(std::uint64_t number, Operation& operation, Bytes size, bool last) {
  Write* write = std::get_if<Write>(&operation.kind);
  const std::size_t index = lanes_.next();
  RcLane& lane = lanes_.queue_pair(index);
  SendWork work;
  work.id = number;
  work.opcode = write != nullptr ? Opcode::write : Opcode::read;
  work.local_address = operation.local.address + operation.issued.count;
  work.local_key = operation.registered->keys[lane.nic()].local;
  work.size = size;
  work.remote_address = operation.peer.address + operation.issued.count;
  work.remote_key = (*operation.peer.keys)[index];
  if (write == nullptr) return lane.post(work);
  // Behind everything else on the only queue pair, the immediate can be part of the last piece.
  const bool with_immediate =
      last && write->immediate && lanes_.queue_pairs() == 1 && !engine_.options.check;
  if (with_immediate) {
    work.opcode = Opcode::write_with_immediate;
    work.immediate = *write->immediate;
  }
  const PostResult result = lane.post(work);
  if (result != PostResult::posted) return result;
  write->lanes_used.set(index);
  if (with_immediate) write->immediate_sent = true;
  return result;
}

Outgoing::Issued Outgoing::ask_for_read(std::uint64_t number, Operation& operation) {
  Frame frame;
  frame.type = FrameType::get;
  frame.operation = number;
  frame.address = operation.peer.address;
  frame.total = operation.size.count;
  control_.add(frame);
  operation.phase = Phase::confirming;
  return Issued::all;
}

/// What the frames of a write, a send or an answered read have in common.
Frame Outgoing::first_frame(std::uint64_t number, Operation& operation) const {
  Frame frame;
  frame.address = operation.peer.address;
  frame.total = operation.size.count;
  if (const auto* send = std::get_if<Send>(&operation.kind)) {
    frame.type = FrameType::body;
    frame.operation = send->peer_receive;
  } else if (const auto* served = std::get_if<ServedRead>(&operation.kind)) {
    frame.type = FrameType::reply;
    frame.operation = served->peer_read;
  } else {
    Write& write = std::get<Write>(operation.kind);
    frame.type = FrameType::put;
    frame.operation = number;
    if (write.immediate && !engine_.options.check) {
      frame.flags = flag_immediate;
      frame.value = *write.immediate;
      write.immediate_sent = true;
    }
  }
  return frame;
}

Outgoing::Issued Outgoing::issue_frames(std::uint64_t number, Operation& operation) {
  Frame frame = first_frame(number, operation);
  while (operation.issued < operation.size || operation.pieces == 0) {
    Lane& lane = lanes_.at(lanes_.next());
    const auto room = lane.acquire(false);
    if (!room) return Issued::blocked;
    const Bytes size{std::min(chunk_.count, operation.size.count - operation.issued.count)};
    frame.payload = static_cast<std::uint32_t>(size.count);
    frame.offset = operation.issued.count;
    if (Status copied =
            bounce_.copy_out(lane, *room, frame, operation.local + operation.issued, number);
        !copied.ok()) {
      broken_ = std::move(copied);
      return Issued::broken;
    }
    ++operation.pieces;
    ++operation.outstanding;
    operation.issued = operation.issued + size;
    lanes_.advance();
  }
  operation.phase = Phase::moving;
  return Issued::all;
}

/// Always by the NIC of the first queue pair, so that atomics are atomic; without RDMA, by the
/// peer.
Outgoing::Issued Outgoing::issue_atomic(std::uint64_t number, Operation& operation,
                                        Atomic& atomic) {
  if (!operation.by_rdma) {
    Frame frame;
    frame.type = FrameType::atomic;
    frame.flags = atomic.swap ? flag_swap : std::uint8_t{0};
    frame.operation = number;
    frame.address = operation.peer.address;
    frame.total = 8;
    frame.value = atomic.operand;
    frame.extra = atomic.desired;
    control_.add(frame);
    operation.phase = Phase::confirming;
    return Issued::all;
  }
  RcLane& lane = lanes_.queue_pair(0);
  const auto room = lane.acquire(false);
  if (!room) return Issued::blocked;
  const auto [address, key] = lane.result_place(room->slot);
  SendWork work;
  work.id = number;
  work.opcode = atomic.swap ? Opcode::compare_swap : Opcode::fetch_add;
  work.local_address = address;
  work.local_key = key;
  work.size = Bytes{8};
  work.remote_address = operation.peer.address;
  work.remote_key = operation.peer.keys->front();
  work.operand = atomic.operand;
  work.swap = atomic.desired;
  const PostResult result = lane.post(work);
  if (result != PostResult::posted) {
    lane.abandon(room->slot);
    return result == PostResult::full ? Issued::blocked : broken(operation);
  }
  atomic.slot = room->slot;
  operation.pieces = operation.outstanding = 1;
  operation.phase = Phase::moving;
  return Issued::all;
}

/// A send begins with its size and, where RDMA reaches it, its keys: the receiver fetches the
/// bytes, or says when frames may come.
Outgoing::Issued Outgoing::announce_send(std::uint64_t number, Operation& operation) {
  Frame frame;
  frame.type = FrameType::message;
  frame.operation = number;
  frame.address = operation.local.address;
  frame.total = operation.size.count;
  if (engine_.options.check) {
    const auto crc = bounce_.checksum(operation.local, operation.size);
    if (!crc.ok()) {
      finish(number, crc.status());
      return Issued::all;
    }
    frame.flags = flag_checked;
    frame.value = crc.value();
  }
  control_.add(frame,
               put_keys(operation.registered != nullptr ? remote_keys(*operation.registered, lanes_)
                                                        : std::vector<std::uint32_t>()));
  operation.phase = Phase::confirming;
  return Issued::all;
}

}  // namespace gdr::transport
