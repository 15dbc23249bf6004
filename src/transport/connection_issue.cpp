// How operations get under way: as RDMA work requests, or as frames through bounce buffers.
#include <fmt/format.h>

#include <algorithm>

#include "src/transport/connection_core.hpp"

namespace gdr::transport {

Status ConnectionCore::register_local(Operation& operation) {
  if (operation.registered != nullptr) return {};
  auto registered = engine_.registrations->get(operation.local, operation.size);
  if (!registered.ok()) return registered.status();
  operation.registered = std::move(registered.value());
  return {};
}

std::vector<std::uint32_t> ConnectionCore::remote_keys(const RegisteredRange& range) const {
  std::vector<std::uint32_t> keys;
  for (const auto& lane : lanes_) keys.push_back(range.keys[lane->nic()].remote);
  return keys;
}

/// RDMA where both ends are registered. Otherwise bounce buffers: an error where gdr was asked for,
/// else a line of the log.
Status ConnectionCore::choose_way(Operation& operation) {
  if (path.path != Path::gdr || operation.kind == OperationKind::receive) return {};
  const bool one_sided = operation.kind != OperationKind::send;
  if (one_sided) {
    const auto peer = shared_by_peer.find(operation.tag);
    if (peer == shared_by_peer.end())
      return {Cause::invalid, fmt::format("the peer shares no range with tag {}", operation.tag)};
    operation.keys = peer->second.keys;
  }
  const bool reachable = !one_sided || operation.keys->size() == lanes_.size();
  const Status local =
      reachable && operation.kind != OperationKind::atomic ? register_local(operation) : Status();
  if (local.cause() == Cause::invalid) return local;
  operation.direct = reachable && local.ok();
  if (operation.direct) return {};
  const std::string why = reachable ? local.text() : "the peer could not register its range";
  operation.registered.reset();
  if (engine_.options.path == Path::gdr)
    return {Cause::registration_refused,
            fmt::format("path gdr was asked for: {}: {}", words(operation), why)};
  if (!fallback_logged_)
    engine_.log(fmt::format(
        "GPU Direct RDMA Disabled for GPU {} / HCA {}: {} is staged (and others like it): {}",
        engine_.facts.memory, engine_.facts.nics, words(operation), why));
  fallback_logged_ = true;
  return {};
}

bool ConnectionCore::issue_all() {
  bool any = false;
  while (!to_issue_.empty() && state == State::open) {
    const std::uint64_t number = to_issue_.front();
    Operation* operation = operations.find(number);
    const Bytes before = operation->issued;
    const bool whole = issue(number, *operation);
    if (state != State::open) return true;
    operation = operations.find(number);
    any = any || whole || (operation != nullptr && operation->issued != before);
    if (!whole) break;  // the next one waits for its turn
    if (!to_issue_.empty() && to_issue_.front() == number)
      to_issue_.pop_front();  // unless its end did that
    if (operation != nullptr && operation->phase == Phase::moving && operation->outstanding == 0)
      moved(number, *operation);
  }
  return any;
}

/// A copy that no path needs, for tests of whoever counts copies.
Status ConnectionCore::copy_once_more(const Operation& operation) {
  std::vector<std::byte> bounce(operation.size.count);
  memory::DeviceMemory& memory = *engine_.memory;
  Status done = memory.copy_out(bounce.data(), operation.local, operation.size, out_);
  if (done.ok()) done = memory.synchronize(out_);
  if (done.ok()) done = memory.copy_in(operation.local, bounce.data(), operation.size, out_);
  return done.ok() ? memory.synchronize(out_) : done;
}

/// True when nothing of it is left to be issued.
bool ConnectionCore::issue(std::uint64_t number, Operation& operation) {
  switch (operation.kind) {
    case OperationKind::write:
      return operation.direct ? issue_pieces(number, operation)
                              : issue_frames(number, operation, FrameType::put);
    case OperationKind::read: {
      if (operation.direct) return issue_pieces(number, operation);
      Frame frame;
      frame.type = FrameType::get;
      frame.operation = number;
      frame.address = operation.remote;
      frame.total = operation.size.count;
      queue_control(frame);
      operation.phase = Phase::confirming;
      return true;
    }
    case OperationKind::send:
      return operation.started ? issue_frames(number, operation, FrameType::body)
                               : issue_message(number, operation);
    case OperationKind::receive:
      return issue_pieces(number, operation);
    case OperationKind::atomic:
      return issue_atomic(number, operation);
    case OperationKind::serve_read:
      return issue_frames(number, operation, FrameType::reply);
  }
  return true;
}

/// One piece a lane where the size is enough for that, and more where a NIC takes no such long
/// message.
bool ConnectionCore::issue_pieces(std::uint64_t number, Operation& operation) {
  const bool several = lanes_.size() > 1;
  std::uint64_t piece = engine_.options.largest_message.count;
  for (const auto& lane : lanes_)
    piece = std::min(piece, engine_.nics[lane->nic()].port.largest_message.count);
  if (several) {
    const std::uint64_t share = (operation.size.count + lanes_.size() - 1) / lanes_.size();
    piece = std::min(piece, std::max<std::uint64_t>((share + 4095) / 4096 * 4096, 4096));
  }
  while (operation.issued < operation.size || !operation.started) {
    const Bytes size{std::min(piece, operation.size.count - operation.issued.count)};
    const bool last = operation.issued + size == operation.size;
    const PostResult result = issue_piece(number, operation, size, last);
    if (result == PostResult::full) return false;
    if (result == PostResult::refused) {
      fail(
          {Cause::device_failed, fmt::format("{}: the queue pair takes no work", words(operation))},
          true);
      return true;
    }
    operation.started = true;
    operation.issued = operation.issued + size;
    ++operation.outstanding;
    bytes_.rdma = bytes_.rdma + size;
    operation.lanes_used.set(next_lane_);
    if (++next_lane_ == lanes_.size()) next_lane_ = 0;
  }
  operation.phase = Phase::moving;
  return true;
}

PostResult ConnectionCore::issue_piece(std::uint64_t number, Operation& operation, Bytes size,
                                       bool last) {
  RcLane& lane = *lanes_[next_lane_];
  SendWork work;
  work.id = number;
  work.opcode = operation.kind == OperationKind::write ? Opcode::write : Opcode::read;
  work.local_address = operation.local.address + operation.issued.count;
  work.local_key = operation.registered->keys[lane.nic()].local;
  work.size = size;
  work.remote_address = operation.remote + operation.issued.count;
  work.remote_key = (*operation.keys)[next_lane_];
  // Behind everything else on the only queue pair, the immediate can ride on the last piece.
  const bool rides = last && operation.immediate && lanes_.size() == 1 && !engine_.options.check &&
                     operation.kind == OperationKind::write;
  if (rides) {
    work.opcode = Opcode::write_with_immediate;
    work.immediate = *operation.immediate;
  }
  const PostResult result = lane.post(work);
  if (rides && result == PostResult::posted) operation.told = true;
  return result;
}

bool ConnectionCore::issue_frames(std::uint64_t number, Operation& operation, FrameType type) {
  const bool first_body = type == FrameType::body && operation.issued.count == 0;
  bool started = type == FrameType::body ? !first_body : operation.started;
  while (operation.issued < operation.size || !started) {
    Lane& lane = lane_at(next_lane_);
    const auto room = lane.acquire(false);
    if (!room) return false;
    const Bytes size{std::min(chunk_.count, operation.size.count - operation.issued.count)};
    Frame frame;
    frame.type = type;
    frame.payload = static_cast<std::uint32_t>(size.count);
    frame.operation = type == FrameType::put ? number : operation.peer_operation;
    frame.address = operation.remote;
    frame.total = operation.size.count;
    frame.offset = operation.issued.count;
    if (operation.immediate && !engine_.options.check && type == FrameType::put) {
      frame.flags = flag_immediate;
      frame.value = *operation.immediate;
      operation.told = true;
    }
    Status copied = engine_.memory->copy_out(room->payload.data(),
                                             operation.local + operation.issued, size, out_);
    auto event = copied.ok() ? engine_.memory->record(out_) : Result<memory::Event>(copied);
    if (!event.ok()) {
      (void)engine_.memory->synchronize(out_);
      lane.abandon(room->slot);
      fail(event.status(), true);
      return true;
    }
    copies_out_.push_back({&lane, room->slot, frame, event.value(), number});
    ++operation.outstanding;
    operation.issued = operation.issued + size;
    operation.started = started = true;
    if (!lanes_.empty()) next_lane_ = (next_lane_ + 1) % lanes_.size();
  }
  operation.phase = Phase::moving;
  return true;
}

bool ConnectionCore::issue_atomic(std::uint64_t number, Operation& operation) {
  if (!operation.direct) {
    Frame frame;
    frame.type = FrameType::atomic;
    frame.flags = operation.swap ? flag_swap : std::uint8_t{0};
    frame.operation = number;
    frame.address = operation.remote;
    frame.total = 8;
    frame.value = operation.operand;
    frame.extra = operation.desired;
    queue_control(frame);
    operation.phase = Phase::confirming;
    return true;
  }
  RcLane& lane = *lanes_.front();  // one NIC, so that atomics are atomic
  const auto room = lane.acquire(false);
  if (!room) return false;
  const auto [address, key] = lane.result_place(room->slot);
  SendWork work;
  work.id = number;
  work.opcode = operation.swap ? Opcode::compare_swap : Opcode::fetch_add;
  work.local_address = address;
  work.local_key = key;
  work.size = Bytes{8};
  work.remote_address = operation.remote;
  work.remote_key = operation.keys->front();
  work.operand = operation.operand;
  work.swap = operation.desired;
  const PostResult result = lane.post(work);
  if (result != PostResult::posted) {
    lane.abandon(room->slot);
    if (result == PostResult::refused)
      fail({Cause::device_failed, "an atomic: the queue pair takes no work"}, true);
    return result == PostResult::refused;
  }
  operation.slot = room->slot;
  operation.started = true;
  operation.outstanding = 1;
  operation.phase = Phase::moving;
  return true;
}

/// A send begins with its size and, where RDMA can, its keys: the receiver fetches it, or says when
/// bodies may come.
bool ConnectionCore::issue_message(std::uint64_t number, Operation& operation) {
  Frame frame;
  frame.type = FrameType::message;
  frame.operation = number;
  frame.address = operation.local.address;
  frame.total = operation.size.count;
  if (engine_.options.check) {
    const auto crc = checksum(operation.local, operation.size);
    if (!crc.ok()) {
      finish(number, crc.status());
      return true;
    }
    frame.flags = flag_checked;
    frame.value = crc.value();
  }
  queue_control(frame, put_keys(operation.registered != nullptr ? remote_keys(*operation.registered)
                                                                : std::vector<std::uint32_t>()));
  operation.started = true;
  operation.phase = Phase::confirming;
  return true;
}

void ConnectionCore::on_rdma(std::uint64_t number) {
  Operation* operation = operations.find(number);
  if (operation == nullptr) return;
  --operation->outstanding;
  if (operation->phase == Phase::moving && operation->outstanding == 0) moved(number, *operation);
}

/// Every byte has left, or come. What is still to be said: that it is complete, that it is right.
void ConnectionCore::moved(std::uint64_t number, Operation& operation) {
  if (operation.kind == OperationKind::serve_read) return finish(number, {});
  if (operation.kind == OperationKind::atomic) {
    const std::uint64_t old = lanes_.front()->result(operation.slot);
    lanes_.front()->abandon(operation.slot);
    return finish(number, {}, old);
  }
  operation.phase = Phase::confirming;
  if (!operation.direct &&
      (operation.kind == OperationKind::write || operation.kind == OperationKind::send))
    return;  // the peer says done
  const bool fetched =
      operation.kind == OperationKind::read || operation.kind == OperationKind::receive;
  if (fetched && operation.direct)
    if (Status flushed = flush(operation.local, operation.size); !flushed.ok())
      return finish(number, flushed);
  if (operation.kind == OperationKind::receive) {
    Status right;
    if (operation.crc && engine_.options.check) {
      const auto crc = checksum(operation.local, operation.placed);
      right = !crc.ok() ? crc.status()
              : crc.value() == *operation.crc
                  ? Status()
                  : Status(Cause::corrupt,
                           fmt::format("send of {}: CRC32C {:08x} here, {:08x} at the sender",
                                       to_string(operation.placed), crc.value(), *operation.crc));
    }
    reply_done(operation.peer_operation, right);
    return finish(number, right);
  }
  confirm(number, operation);
}

/// The peer's side of it: whether the bytes are right, and that they are there.
void ConnectionCore::confirm(std::uint64_t number, Operation& operation) {
  const bool tell = operation.immediate && !operation.told;
  if (engine_.options.check && !operation.verified) {
    const auto crc = checksum(operation.local, operation.size);
    if (!crc.ok()) return finish(number, crc.status());
    Frame frame;
    frame.type = FrameType::verify;
    frame.operation = number;
    frame.address = operation.remote;
    frame.total = operation.size.count;
    frame.value = crc.value();
    if (tell) frame.flags = flag_immediate;
    if (tell) frame.extra = *operation.immediate;
    operation.verified = operation.told = true;
    return queue_control(frame);
  }
  if (!tell) return finish(number, {});
  operation.told = true;
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (!operation.lanes_used.test(lane)) continue;
    Frame frame;
    frame.type = FrameType::notify;
    frame.operation = number;
    frame.total = operation.size.count;
    frame.value = *operation.immediate;
    frame.extra = operation.lanes_used.count();
    queue_control(frame, {}, lane);
  }
}

/// Messages meet receives in the order of both.
void ConnectionCore::match_messages() {
  while (!messages_.empty() && !receives_.empty()) {
    Message message = std::move(messages_.front());
    messages_.pop_front();
    const std::uint64_t number = receives_.front();
    receives_.pop_front();
    Operation& operation = *operations.find(number);
    operation.peer_operation = message.operation;
    operation.crc = message.crc;
    if (message.size > operation.size) {
      const Status small(Cause::invalid,
                         fmt::format("a send of {} met a receive of {}", to_string(message.size),
                                     to_string(operation.size)));
      reply_done(message.operation, small);
      finish(number, small);
      continue;
    }
    operation.size = operation.placed = message.size;
    operation.remote = message.address;
    operation.keys = std::move(message.keys);
    const bool direct = path.path == Path::gdr && operation.keys->size() == lanes_.size() &&
                        register_local(operation).ok();
    if (!direct && engine_.options.path == Path::gdr) {
      const Status refused(
          Cause::registration_refused,
          fmt::format("path gdr was asked for: the receive of {} cannot be registered",
                      to_string(message.size)));
      reply_done(message.operation, refused);
      finish(number, refused);
      continue;
    }
    operation.direct = direct;
    if (direct) {
      operation.phase = Phase::issuing;
      to_issue_.push_back(number);
      continue;
    }
    operation.placed = Bytes{};
    operation.phase = Phase::confirming;
    Frame frame;
    frame.type = FrameType::clear;
    frame.operation = message.operation;
    frame.extra = number;
    queue_control(frame);
  }
}

/// Copies that have ended: bounce buffers that may leave, and those that may be filled again. They
/// end in order.
bool ConnectionCore::finish_copies() {
  bool any = false;
  while (!copies_out_.empty()) {
    const CopyOut copy = copies_out_.front();
    const auto done = engine_.memory->done(copy.event);
    if (!done.ok()) return copies_out_.pop_front(), fail(done.status(), true), true;
    if (!done.value()) break;
    copies_out_.pop_front();
    any = true;
    if (!lanes_.empty()) bytes_.bounce_out.count += copy.frame.payload;
    copy.lane->send(copy.slot, copy.frame);
    on_rdma(copy.operation);
    if (state != State::open) return true;
  }
  while (!copies_in_.empty()) {
    const CopyIn copy = copies_in_.front();
    const auto done = engine_.memory->done(copy.event);
    if (!done.ok()) return copies_in_.pop_front(), fail(done.status(), true), true;
    if (!done.value()) break;
    copies_in_.pop_front();
    any = true;
    copy.lane->release(copy.slot);
    placed(copy.frame);
    if (state == State::failed) return true;
  }
  return any;
}

}  // namespace gdr::transport
