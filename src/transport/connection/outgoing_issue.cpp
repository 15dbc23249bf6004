// How operations leave: as RDMA work requests, or as frames through bounce buffers.
#include <fmt/format.h>

#include <algorithm>

#include "src/transport/connection/outgoing.hpp"

namespace gdr::transport {

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

/// One piece per queue pair if the size allows it, and more pieces where a NIC takes no message
/// that long.
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

/// By the NIC of the first queue pair, always that one, so that atomics are atomic; else by the
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
