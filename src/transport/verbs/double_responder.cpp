// The responder's half of DoublePair.
#include <algorithm>
#include <cstring>

#include "src/transport/verbs/double_pair.hpp"

namespace gdr::transport {

void DoublePair::reply(DoublePacket::Kind kind, std::uint64_t psn) {
  DoublePacket packet;
  packet.kind = kind;
  packet.to = route_.peer_queue_pair;
  packet.psn = psn;
  to_peer(std::move(packet));
}

void DoublePair::refuse(CompletionStatus reason) {
  DoublePacket packet;
  packet.kind = DoublePacket::Kind::refuse;
  packet.to = route_.peer_queue_pair;
  packet.psn = expected_;
  packet.reason = reason;
  to_peer(std::move(packet));
  device_.happened(DeviceEvent::queue_pair_failed);
  break_down(CompletionStatus::flushed);
}

void DoublePair::take_request(DoublePacket& packet) {
  if (packet.psn > expected_) {
    if (!reported_) reply(DoublePacket::Kind::out_of_sequence, expected_);
    reported_ = true;
    return;
  }
  if (packet.psn < expected_) return repeat(packet);
  reported_ = false;
  switch (packet.kind) {
    case DoublePacket::Kind::read_request:
      if (answer_read(packet)) expected_ += packet.count;
      return;
    case DoublePacket::Kind::atomic_request:
      if (answer_atomic(packet)) ++expected_;
      return;
    default:
      if (!place(packet)) return;
      ++expected_;
      reply(DoublePacket::Kind::acknowledge, expected_);
  }
}

/// Answers a repeated request: reads are read again, atomics answered from a record, the rest
/// acknowledged.
void DoublePair::repeat(const DoublePacket& packet) {
  if (packet.kind == DoublePacket::Kind::read_request) {
    (void)answer_read(packet);
  } else if (packet.kind == DoublePacket::Kind::atomic_request) {
    (void)answer_atomic(packet);
  } else {
    reply(DoublePacket::Kind::acknowledge, expected_);
  }
}

bool DoublePair::place(const DoublePacket& packet) {
  if (packet.opcode == Opcode::send) return place_send(packet);
  if (packet.opcode == Opcode::write_with_immediate && packet.last && receives_.empty()) {
    reply(DoublePacket::Kind::not_ready, expected_);
    return false;
  }
  if (!packet.payload.empty()) {
    std::byte* to = fabric_->translate(device_, packet.remote_key, packet.remote_address,
                                       Bytes{packet.payload.size()}, true);
    if (to == nullptr) return refuse(CompletionStatus::remote_access), false;
    std::copy(packet.payload.begin(), packet.payload.end(), to);
  }
  received_ =
      packet.first ? Bytes{packet.payload.size()} : received_ + Bytes{packet.payload.size()};
  if (packet.last && packet.opcode == Opcode::write_with_immediate) finish_receive(packet);
  return true;
}

bool DoublePair::place_send(const DoublePacket& packet) {
  if (receives_.empty()) {
    reply(DoublePacket::Kind::not_ready, expected_);
    return false;
  }
  const ReceiveWork& receive = receives_.front();
  if (packet.first) received_ = Bytes{};
  const Bytes size{packet.payload.size()};
  if (received_.count + size.count > receive.size.count) {
    queue_.add({receive.id, CompletionStatus::local_length, true, false, 0, {}});
    receives_.pop_front();
    return refuse(CompletionStatus::remote_invalid), false;
  }
  if (size.count > 0) {
    std::byte* to =
        fabric_->translate(device_, receive.key, receive.address + received_.count, size, true);
    if (to == nullptr) {
      queue_.add({receive.id, CompletionStatus::local_protection, true, false, 0, {}});
      receives_.pop_front();
      return refuse(CompletionStatus::remote_operation), false;
    }
    std::copy(packet.payload.begin(), packet.payload.end(), to);
    received_.count += size.count;
  }
  if (packet.last) finish_receive(packet);
  return true;
}

void DoublePair::finish_receive(const DoublePacket& packet) {
  const bool immediate = packet.opcode == Opcode::write_with_immediate;
  queue_.add({receives_.front().id, CompletionStatus::ok, true, immediate,
              immediate ? packet.immediate : 0, received_});
  receives_.pop_front();
}

bool DoublePair::answer_read(const DoublePacket& packet) {
  for (std::uint64_t i = 0; i < packet.count; ++i) {
    const std::uint64_t offset = i * route_.mtu.count;
    const Bytes size{std::min(route_.mtu.count,
                              packet.read_size.count - std::min(packet.read_size.count, offset))};
    DoublePacket response;
    response.kind = DoublePacket::Kind::read_response;
    response.to = route_.peer_queue_pair;
    response.psn = packet.psn + i;
    if (size.count > 0) {
      const std::byte* from = fabric_->translate(device_, packet.remote_key,
                                                 packet.remote_address + offset, size, false);
      if (from == nullptr) return refuse(CompletionStatus::remote_access), false;
      response.payload.assign(from, from + size.count);
    }
    to_peer(std::move(response));
  }
  return true;
}

bool DoublePair::answer_atomic(const DoublePacket& packet) {
  std::uint64_t old = 0;
  const auto before = atomic_results_.find(packet.psn);
  if (before != atomic_results_.end()) {
    old = before->second;
  } else {
    if (packet.remote_address % sizeof(old) != 0)
      return refuse(CompletionStatus::remote_invalid), false;
    std::byte* place = fabric_->translate(device_, packet.remote_key, packet.remote_address,
                                          Bytes{sizeof(old)}, true);
    if (place == nullptr) return refuse(CompletionStatus::remote_access), false;
    std::memcpy(&old, place, sizeof(old));
    const std::uint64_t sum = old + packet.operand;
    const std::uint64_t now = packet.opcode == Opcode::fetch_add ? sum
                              : old == packet.operand            ? packet.swap
                                                                 : old;
    std::memcpy(place, &now, sizeof(now));
    atomic_results_[packet.psn] = old;
    if (atomic_results_.size() > 64) atomic_results_.erase(atomic_results_.begin());
  }
  DoublePacket response;
  response.kind = DoublePacket::Kind::atomic_response;
  response.to = route_.peer_queue_pair;
  response.psn = packet.psn;
  response.payload.resize(sizeof(old));
  std::memcpy(response.payload.data(), &old, sizeof(old));
  to_peer(std::move(response));
  return true;
}

}  // namespace gdr::transport
