#include "src/transport/lanes/rc_lane.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "src/common/check.hpp"

namespace gdr::transport {
namespace {

constexpr unsigned notices = 64;  // for frames and immediates beyond those with a bounce buffer:
                                  // fewer credits go back on their own
constexpr unsigned credit_receives = 8;  // for frames that give credits, which need none

enum class Kind : std::uint64_t { rdma = 1, send = 2, receive = 3, payload = 4 };
constexpr std::size_t receive_stride = frame_header + largest_control;
constexpr std::uint64_t value_mask = (std::uint64_t{1} << 56U) - 1;
std::uint64_t id_of(Kind kind, std::uint64_t value) {
  return (static_cast<std::uint64_t>(kind) << 56U) | value;
}

}  // namespace

RcLane::RcLane(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic)
    : device_(device),
      nic_(nic),
      chunk_(chunk),
      stride_((std::max<std::size_t>(chunk.count, largest_control) + frame_header + 63) / 64 * 64),
      depth_(options.depth),
      sends_(options.depth + control_buffers),
      receives_(options.depth + control_buffers + notices + credit_receives),
      queue_depth_(std::max(options.queue_depth, 2 * sends_ + 4)),
      slot_free_(options.depth, false) {}

RcLane::~RcLane() {
  pair_.reset();
  queue_.reset();
  region_.reset();
  if (buffer_ != nullptr) munmap(buffer_, buffer_size_);
}

Result<std::unique_ptr<RcLane>> RcLane::make(Device& device, const TransportOptions& options,
                                             Bytes chunk, unsigned nic) {
  std::unique_ptr<RcLane> lane(new RcLane(device, options, chunk, nic));
  if (Status status = lane->prepare(); !status.ok()) return status;
  return lane;
}

Status RcLane::prepare() {
  const unsigned limit = device_.limits().queue_depth;
  if (limit > 0) queue_depth_ = std::min(queue_depth_, limit);
  if (queue_depth_ < 2 * sends_ + 2 || (limit > 0 && receives_ > limit))
    return {Cause::invalid,
            fmt::format("{}: a depth of {} bounce buffers needs queues of {}; the device has {}",
                        device_.name(), depth_, std::max(receives_, 2 * sends_ + 2), limit)};
  buffer_size_ = stride_ * sends_ + chunk_.count * depth_ + receive_stride * receives_;
  void* buffer =
      mmap(nullptr, buffer_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED)
    return {Cause::out_of_memory,
            fmt::format("no {} for bounce buffers", to_string(Bytes{buffer_size_}))};
  buffer_ = static_cast<std::byte*>(buffer);
  const auto address = reinterpret_cast<std::uint64_t>(buffer_);
  auto region = device_.register_memory(address, Bytes{buffer_size_}, address);
  if (!region.ok()) return region.status();
  region_ = std::move(region.value());
  auto queue = device_.create_completion_queue(queue_depth_ + receives_);
  if (!queue.ok()) return queue.status();
  queue_ = std::move(queue.value());
  auto pair = device_.create_queue_pair(*queue_, {queue_depth_, receives_});
  if (!pair.ok()) return pair.status();
  pair_ = std::move(pair.value());
  for (unsigned slot = 0; slot < sends_; ++slot) free_.push_back(slot);
  for (unsigned slot = 0; slot < receives_; ++slot)
    if (!post_receive(slot))
      return {Cause::device_failed, fmt::format("{}: a receive cannot be posted", device_.name())};
  return {};
}

Status RcLane::connect(const QueuePairRoute& route, const LaneOffer& peer, unsigned peer_depth,
                       Bytes peer_chunk) {
  credits_ = peer_depth + control_buffers + notices;
  slot_credits_ = peer_depth_ = peer_depth;
  peer_ = peer;
  peer_chunk_ = peer_chunk;
  return pair_->connect(route);
}

std::pair<std::uint64_t, std::uint32_t> RcLane::slots() const {
  return {reinterpret_cast<std::uint64_t>(buffer_ + sends_ * stride_), region_->remote_key()};
}

std::span<const std::byte> RcLane::received(unsigned slot) const {
  const std::byte* slots = buffer_ + sends_ * stride_;
  if (slot < depth_) return {slots + slot * chunk_.count, chunk_.count};
  return {slots + depth_ * chunk_.count + (slot - depth_) * receive_stride + frame_header,
          largest_control};
}

bool RcLane::post_receive(unsigned slot) {
  if (pair_ == nullptr) return false;
  ReceiveWork work;
  work.id = id_of(Kind::receive, slot);
  work.address = reinterpret_cast<std::uint64_t>(received(depth_ + slot).data()) - frame_header;
  work.key = region_->local_key();
  work.size = Bytes{receive_stride};
  return pair_->post(work) == PostResult::posted;
}

std::optional<Lane::Room> RcLane::acquire(bool control) {
  if (pair_ == nullptr || free_.size() <= (control ? 0 : control_buffers)) return std::nullopt;
  const unsigned slot = free_.back();
  free_.pop_back();
  return Room{slot, {buffer_ + slot * stride_ + frame_header, stride_ - frame_header}};
}

void RcLane::send(unsigned slot, const Frame& frame) {
  check(frame.payload <= (carries_data(frame.type) ? peer_chunk_.count : largest_control),
        "a frame that is longer than its buffer");
  ready_.emplace_back(slot, frame);
  flush_ready();
}

/// Writes the payload of a data frame into the peer's next bounce buffer. True when it is posted,
/// now or earlier.
bool RcLane::post_payload(unsigned slot, Frame& frame) {
  if (payload_posted_) return true;
  if (slot_credits_ == 0 || in_flight_ + 2 > queue_depth_) return false;
  frame.slot = static_cast<std::uint16_t>(next_slot_);
  if (frame.payload > 0) {
    SendWork work;
    work.id = id_of(Kind::payload, 0);
    work.opcode = Opcode::write;
    work.local_address = reinterpret_cast<std::uint64_t>(buffer_ + slot * stride_ + frame_header);
    work.local_key = region_->local_key();
    work.size = Bytes{frame.payload};
    work.remote_address = peer_.slots_address + next_slot_ * peer_chunk_.count;
    work.remote_key = peer_.slots_key;
    if (pair_->post(work) != PostResult::posted) return false;
    ++in_flight_;
  }
  --slot_credits_;
  next_slot_ = (next_slot_ + 1) % peer_depth_;
  return payload_posted_ = true;
}

/// Frames leave in the order in which they were handed over, as far as credits and the queue go.
bool RcLane::flush_ready() {
  bool sent = false;
  while (pair_ != nullptr && !ready_.empty() && in_flight_ < queue_depth_) {
    auto& [slot, frame] = ready_.front();
    const bool needs_credit = frame.type != FrameType::credit;
    const bool data = carries_data(frame.type);
    if (needs_credit && credits_ <= (data ? control_buffers : 0)) break;
    if (data && !post_payload(slot, frame)) break;
    std::byte* at = buffer_ + slot * stride_;
    frame.credits = static_cast<std::uint16_t>(owed_);
    frame.slots = static_cast<std::uint16_t>(owed_slots_);
    put_frame(std::span<std::byte, frame_header>(at, frame_header), frame);
    SendWork work;
    work.id = id_of(Kind::send, slot);
    work.opcode = Opcode::send;
    work.local_address = reinterpret_cast<std::uint64_t>(at);
    work.local_key = region_->local_key();
    work.size = Bytes{frame_header + (data ? 0 : frame.payload)};
    if (pair_->post(work) != PostResult::posted) break;
    owed_ = owed_slots_ = 0;
    payload_posted_ = false;
    if (needs_credit) --credits_;
    ++in_flight_;
    ready_.pop_front();
    sent = true;
  }
  return sent;
}

PostResult RcLane::post(SendWork work) {
  // Places in the queue are reserved for frames.
  if (pair_ == nullptr) return PostResult::refused;
  if (in_flight_ + 2 * sends_ >= queue_depth_) return PostResult::full;
  const bool immediate = work.opcode == Opcode::write_with_immediate;
  if (immediate && (credits_ <= control_buffers || !ready_.empty())) return PostResult::full;
  work.id = id_of(Kind::rdma, work.id & value_mask);
  const PostResult result = pair_->post(work);
  if (result != PostResult::posted) return result;
  if (immediate) --credits_;
  ++in_flight_;
  return result;
}

std::pair<std::uint64_t, std::uint32_t> RcLane::result_place(unsigned slot) const {
  return {reinterpret_cast<std::uint64_t>(buffer_ + slot * stride_), region_->local_key()};
}

std::uint64_t RcLane::result(unsigned slot) const {
  std::uint64_t value = 0;
  std::memcpy(&value, buffer_ + slot * stride_, sizeof(value));
  return value;
}

void RcLane::release(unsigned slot) {
  if (slot >= depth_) {
    if (post_receive(slot - depth_)) ++owed_;
    return;
  }
  slot_free_[slot] = true;
  for (; slot_free_[oldest_slot_]; oldest_slot_ = (oldest_slot_ + 1) % depth_) {
    slot_free_[oldest_slot_] = false;
    ++owed_slots_;
  }
}

void RcLane::return_credits() {
  const bool many = owed_ >= std::max(1U, (receives_ - credit_receives) / 2) ||
                    owed_slots_ >= std::max(1U, depth_ / 2);
  // Behind frames that wait for credits they would wait, too, and two sides waiting for each other
  // would block for ever.
  const bool waiting = !ready_.empty() && ready_.front().second.type == FrameType::credit;
  if (!many || waiting) return;
  const auto room = acquire(true);
  if (!room) return;
  // Insert it in front of everything that has not begun to leave.
  ready_.insert(ready_.begin() + (payload_posted_ ? 1 : 0), {room->slot, Frame{}});
  flush_ready();
}

bool RcLane::poll(LaneListener& listener) {
  if (pair_ == nullptr) return false;
  if (next_completion_ == completions_found_) {
    completions_found_ = queue_->poll(completions_);
    next_completion_ = 0;
  }
  const bool any = next_completion_ < completions_found_;
  // The listener may call poll again, which continues here.
  while (next_completion_ < completions_found_ && pair_ != nullptr) {
    const Completion completion = completions_[next_completion_++];
    handle(completion, listener);
  }
  if (pair_ == nullptr) return true;
  const bool sent = !ready_.empty() && flush_ready();
  if (owed_ > 0 || owed_slots_ > 0) return_credits();
  return any || sent;
}

void RcLane::handle(const Completion& completion, LaneListener& listener) {
  const auto kind = static_cast<Kind>(completion.id >> 56U);
  const std::uint64_t value = completion.id & value_mask;
  if (kind != Kind::receive) --in_flight_;
  if (kind == Kind::send) free_.push_back(static_cast<unsigned>(value));
  if (completion.status != CompletionStatus::ok)
    return listener.on_broken(*this, completion.status);
  if (kind == Kind::rdma) return listener.on_rdma(value);
  if (kind != Kind::receive) return;
  const auto slot = static_cast<unsigned>(value);
  if (completion.has_immediate) {
    release(depth_ + slot);
    return listener.on_immediate(completion.immediate, completion.size);
  }
  take_frame(slot, completion.size, listener);
}

void RcLane::take_frame(unsigned slot, Bytes size, LaneListener& listener) {
  const std::byte* at = received(depth_ + slot).data() - frame_header;
  if (size.count < frame_header)
    return listener.on_broken(protocol_error("a frame that does not fit"));
  const auto parsed = parse_frame(std::span<const std::byte, frame_header>(at, frame_header),
                                  std::max<std::size_t>(chunk_.count, largest_control));
  if (!parsed.ok()) return listener.on_broken(parsed.status());
  const Frame frame = parsed.value();
  const bool data = carries_data(frame.type);
  if (data ? frame.payload > chunk_.count || frame.slot >= depth_
           : frame_header + frame.payload > size.count)
    return listener.on_broken(protocol_error("a frame that does not fit"));
  credits_ += frame.credits;
  slot_credits_ += frame.slots;
  if (frame.type == FrameType::credit) {
    post_receive(slot);  // used no credit, so none is given back
    return;
  }
  if (!data) return listener.on_frame(*this, frame, depth_ + slot);
  release(depth_ + slot);
  listener.on_frame(*this, frame, frame.slot);
}

}  // namespace gdr::transport
