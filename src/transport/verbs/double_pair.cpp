#include "src/transport/verbs/double_pair.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/common/check.hpp"

namespace gdr::transport {
namespace {

constexpr std::uint64_t send_window = 128;  // packets that are not acknowledged
constexpr Duration not_ready_pause{640e-6};

}  // namespace

DoublePair::DoublePair(std::shared_ptr<DoubleFabric> fabric, DoubleDevice& device,
                       DoubleCompletionQueue& queue, QueuePairSizes sizes)
    : fabric_(std::move(fabric)), device_(device), queue_(queue), sizes_(sizes) {
  const std::lock_guard lock(fabric_->mutex);
  number_ = ++fabric_->last_pair;
  fabric_->pairs.emplace(number_, this);
  ++fabric_->live;
}

DoublePair::~DoublePair() {
  const std::lock_guard lock(fabric_->mutex);
  fabric_->pairs.erase(number_);
  alive_.reset();
  --fabric_->live;
}

Status DoublePair::connect(const QueuePairRoute& route) {
  const std::lock_guard lock(fabric_->mutex);
  if (route.retries > 6 || route.receiver_not_ready_retries > 6)
    return {Cause::invalid,
            fmt::format("{}: retries are 0 to 6: 7 means for ever", device_.name())};
  if (route.gid_index >= device_.gid_count() || state_ != State::initialized)
    return {Cause::device_failed,
            fmt::format("{}: a queue pair to its peer by GID index {}: Invalid argument (errno 22)",
                        device_.name(), route.gid_index)};
  route_ = route;
  end_ = next_ = highest_ = oldest_ = route.own_psn;
  expected_ = route.peer_psn;
  state_ = State::connected;
  return {};
}

PostResult DoublePair::post(const SendWork& work) {
  const std::lock_guard lock(fabric_->mutex);
  if (state_ == State::initialized) return PostResult::refused;
  if (outgoing_.size() >= sizes_.sends ||
      fabric_->chance(++fabric_->posts, 5, fabric_->options.faults.full))
    return PostResult::full;
  Outgoing outgoing;
  outgoing.work = work;
  outgoing.first = end_;
  const std::uint64_t mtu = route_.mtu.count;
  outgoing.packets = std::max<std::uint64_t>(1, (work.size.count + mtu - 1) / mtu);
  if (state_ == State::failed) {
    complete(outgoing, CompletionStatus::flushed);
    return PostResult::posted;
  }
  end_ += outgoing.packets;
  outgoing_.push_back(outgoing);
  pump();
  return PostResult::posted;
}

PostResult DoublePair::post(const ReceiveWork& work) {
  const std::lock_guard lock(fabric_->mutex);
  if (receives_.size() >= sizes_.receives) return PostResult::full;
  receives_.push_back(work);
  if (state_ == State::failed) flush_all();
  return PostResult::posted;
}

void DoublePair::fail() {
  const std::lock_guard lock(fabric_->mutex);
  if (state_ != State::failed) break_down(CompletionStatus::flushed);
}

void DoublePair::complete(const Outgoing& outgoing, CompletionStatus status) {
  queue_.add({outgoing.work.id, status, false, false, 0,
              status == CompletionStatus::ok ? outgoing.work.size : Bytes{}});
}

/// Ends the oldest request with `status` and flushes everything behind it.
void DoublePair::break_down(CompletionStatus status) {
  state_ = State::failed;
  if (!outgoing_.empty() && status != CompletionStatus::flushed) {
    complete(outgoing_.front(), status);
    outgoing_.pop_front();
  }
  flush_all();
}

void DoublePair::flush_all() {
  for (const Outgoing& outgoing : outgoing_) complete(outgoing, CompletionStatus::flushed);
  outgoing_.clear();
  for (const ReceiveWork& receive : receives_)
    queue_.add({receive.id, CompletionStatus::flushed, true, false, 0, {}});
  receives_.clear();
}

DoublePair::Outgoing* DoublePair::at_psn(std::uint64_t psn) {
  for (Outgoing& outgoing : outgoing_)
    if (psn >= outgoing.first && psn < outgoing.first + outgoing.packets) return &outgoing;
  return nullptr;
}

void DoublePair::pump() {
  if (state_ != State::connected || waiting_) return;
  while (next_ < end_ && next_ < oldest_ + send_window) {
    Outgoing* outgoing = at_psn(next_);
    check(outgoing != nullptr, "a PSN of the double belongs to no request");
    if (!send_request(*outgoing)) return;
  }
  arm_timer();
}

/// Sends the packet at next_, or the rest of a read. False when the local buffer is not registered:
/// the queue pair is broken then.
bool DoublePair::send_request(Outgoing& outgoing) {
  const SendWork& work = outgoing.work;
  const std::uint64_t index = next_ - outgoing.first;
  const Bytes offset{index * route_.mtu.count};
  const bool again = next_ < highest_;
  DoublePacket packet;
  packet.to = route_.peer_queue_pair;
  packet.psn = next_;
  packet.opcode = work.opcode;
  packet.remote_address = work.remote_address + offset.count;
  packet.remote_key = work.remote_key;
  packet.immediate = work.immediate;
  packet.operand = work.operand;
  packet.swap = work.swap;
  packet.first = index == 0;
  if (outgoing.fetches()) {
    packet.kind = work.opcode == Opcode::read ? DoublePacket::Kind::read_request
                                              : DoublePacket::Kind::atomic_request;
    packet.count = outgoing.packets - index;
    packet.read_size = Bytes{work.size.count - offset.count};
    next_ = outgoing.first + outgoing.packets;
  } else {
    const Bytes size{std::min(route_.mtu.count, work.size.count - offset.count)};
    packet.last = index + 1 == outgoing.packets;
    if (size.count > 0) {
      const std::byte* from = fabric_->translate(device_, work.local_key,
                                                 work.local_address + offset.count, size, false);
      if (from == nullptr) {
        // Requests before it may still be in flight. A NIC would complete them first; here they are
        // flushed.
        while (outgoing_.size() > 1 && &outgoing_.front() != &outgoing) {
          complete(outgoing_.front(), CompletionStatus::flushed);
          outgoing_.pop_front();
        }
        break_down(CompletionStatus::local_protection);
        return false;
      }
      packet.payload.assign(from, from + size.count);
    }
    ++next_;
  }
  highest_ = std::max(highest_, next_);
  to_peer(std::move(packet), again);
  return true;
}

void DoublePair::arm_timer() {
  if (oldest_ >= next_ || state_ != State::connected) return;
  const std::uint64_t generation = ++timer_;
  const Duration timeout{4.096e-6 * std::pow(2.0, route_.timeout)};
  fabric_->at(fabric_->time() + timeout, [this, generation, alive = std::weak_ptr<bool>(alive_)] {
    if (!alive.expired() && generation == timer_ && state_ == State::connected) timed_out();
  });
}

void DoublePair::timed_out() {
  if (oldest_ >= next_) return;
  if (retries_++ >= route_.retries) return break_down(CompletionStatus::retry_exceeded);
  next_ = oldest_;
  pump();
}

void DoublePair::go_back(std::uint64_t psn) {
  acknowledged(psn);
  if (state_ != State::connected) return;
  next_ = std::max(oldest_, std::min(next_, psn));
  pump();
}

/// Everything below `below` has arrived; a read counts once its data has.
void DoublePair::acknowledged(std::uint64_t below) {
  const std::uint64_t before = oldest_;
  while (!outgoing_.empty()) {
    const Outgoing& front = outgoing_.front();
    if (front.fetches() && front.responses < front.packets) {
      // A later acknowledgement means that responses were lost.
      oldest_ = std::max(oldest_, std::min(below, front.first + front.responses));
      break;
    }
    oldest_ = std::max(oldest_, std::min(below, front.first + front.packets));
    if (oldest_ < front.first + front.packets) break;
    complete(front, CompletionStatus::ok);
    outgoing_.pop_front();
  }
  if (oldest_ == before) return;
  retries_ = 0;
  not_ready_ = 0;
  next_ = std::max(next_, oldest_);
  if (oldest_ < next_) {
    arm_timer();
  } else {
    ++timer_;
  }
  pump();
}

void DoublePair::take_response(const DoublePacket& packet) {
  Outgoing* outgoing = at_psn(packet.psn);
  if (outgoing == nullptr || !outgoing->fetches() ||
      packet.psn != outgoing->first + outgoing->responses) {
    // At a gap, ask for the rest again. A response that was seen before is ignored.
    if (outgoing != nullptr && packet.psn > outgoing->first + outgoing->responses &&
        oldest_ < outgoing->first + outgoing->packets && !reported_gap_) {
      reported_gap_ = true;
      next_ = oldest_;
      pump();
    }
    return;
  }
  reported_gap_ = false;
  const SendWork& work = outgoing->work;
  if (!packet.payload.empty()) {
    const Bytes offset{outgoing->responses * route_.mtu.count};
    std::byte* to = fabric_->translate(device_, work.local_key, work.local_address + offset.count,
                                       Bytes{packet.payload.size()}, true);
    if (to == nullptr) return break_down(CompletionStatus::local_protection);
    std::copy(packet.payload.begin(), packet.payload.end(), to);
  }
  ++outgoing->responses;
  acknowledged(packet.psn + 1);
}

void DoublePair::wait_for_receiver(std::uint64_t psn) {
  acknowledged(psn);
  if (state_ != State::connected || waiting_ || psn < oldest_) return;
  if (not_ready_++ >= route_.receiver_not_ready_retries)
    return break_down(CompletionStatus::rnr_exceeded);
  waiting_ = true;
  next_ = std::max(oldest_, psn);
  ++timer_;
  fabric_->at(fabric_->time() + not_ready_pause, [this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    waiting_ = false;
    pump();
  });
}

void DoublePair::arrived(DoublePacket packet) {
  if (state_ != State::connected) return;
  using Kind = DoublePacket::Kind;
  switch (packet.kind) {
    case Kind::data:
    case Kind::read_request:
    case Kind::atomic_request:
      return take_request(packet);
    case Kind::read_response:
    case Kind::atomic_response:
      return take_response(packet);
    case Kind::acknowledge:
      return acknowledged(packet.psn);
    case Kind::out_of_sequence:
      return go_back(packet.psn);
    case Kind::not_ready:
      return wait_for_receiver(packet.psn);
    case Kind::refuse:
      acknowledged(packet.psn);
      return break_down(packet.reason);
  }
}

}  // namespace gdr::transport
