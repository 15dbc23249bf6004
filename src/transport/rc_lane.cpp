#include "transport/rc_lane.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/check.hpp"

namespace gdr::transport {
namespace {

constexpr unsigned control_buffers = 2;  // and as many credits, which data leaves alone
constexpr unsigned credit_receives = 8;  // for frames that give credits, which need none

enum class Kind : std::uint64_t { rdma = 1, send = 2, receive = 3, credit = 4 };
constexpr std::uint64_t value_mask = (std::uint64_t{1} << 56U) - 1;
std::uint64_t id_of(Kind kind, std::uint64_t value) { return (static_cast<std::uint64_t>(kind) << 56U) | value; }

}  // namespace

RcLane::RcLane(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic)
    : device_(device),
      nic_(nic),
      chunk_(chunk),
      stride_((chunk.count + frame_header + 63) / 64 * 64),
      sends_(options.depth + control_buffers),
      receives_(options.depth + control_buffers + credit_receives),
      queue_depth_(std::max(options.queue_depth, sends_ + 4)) {}

RcLane::~RcLane() {
  pair_.reset();
  queue_.reset();
  region_.reset();
  if (buffer_ != nullptr) munmap(buffer_, buffer_size_);
}

Result<std::unique_ptr<RcLane>> RcLane::make(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic) {
  std::unique_ptr<RcLane> lane(new RcLane(device, options, chunk, nic));
  if (Status status = lane->prepare(); !status.ok()) return status;
  return lane;
}

Status RcLane::prepare() {
  const unsigned limit = device_.limits().queue_depth;
  if (limit > 0) queue_depth_ = std::min(queue_depth_, limit);
  if (queue_depth_ < sends_ + 2 || (limit > 0 && receives_ > limit))
    return {Cause::invalid, fmt::format("{}: a depth of {} bounce buffers needs queues of {}; the device has {}", device_.name(), sends_ - control_buffers, receives_, limit)};
  buffer_size_ = stride_ * (sends_ + receives_);
  void* buffer = mmap(nullptr, buffer_size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (buffer == MAP_FAILED) return {Cause::out_of_memory, fmt::format("no {} for bounce buffers", to_string(Bytes{buffer_size_}))};
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
    if (!post_receive(slot)) return {Cause::device_failed, fmt::format("{}: a receive cannot be posted", device_.name())};
  return {};
}

Status RcLane::connect(const Route& route, unsigned peer_depth) {
  credits_ = peer_depth + control_buffers;
  return pair_->connect(route);
}

bool RcLane::post_receive(unsigned slot) {
  if (pair_ == nullptr) return false;
  ReceiveWork work;
  work.id = id_of(Kind::receive, slot);
  work.address = reinterpret_cast<std::uint64_t>(buffer_ + (sends_ + slot) * stride_);
  work.key = region_->local_key();
  work.size = chunk_ + Bytes{frame_header};
  return pair_->post(work) == PostResult::posted;
}

std::optional<Lane::Room> RcLane::acquire(bool control) {
  if (pair_ == nullptr || free_.size() <= (control ? 0 : control_buffers)) return std::nullopt;
  const unsigned slot = free_.back();
  free_.pop_back();
  return Room{slot, {buffer_ + slot * stride_ + frame_header, chunk_.count}};
}

void RcLane::send(unsigned slot, const Frame& frame) {
  check(frame.payload <= chunk_.count, "a frame that is longer than its buffer");
  ready_.emplace_back(slot, frame);
  flush_ready();
}

/// Frames leave in the order in which they were handed over, as far as credits and the queue go.
bool RcLane::flush_ready() {
  bool sent = false;
  while (pair_ != nullptr && !ready_.empty() && in_flight_ < queue_depth_) {
    auto& [slot, frame] = ready_.front();
    const bool needs_credit = frame.type != FrameType::credit;
    const bool data = frame.type == FrameType::put || frame.type == FrameType::reply || frame.type == FrameType::body;
    if (needs_credit && credits_ <= (data ? control_buffers : 0)) break;
    std::byte* at = buffer_ + slot * stride_;
    frame.credits = static_cast<std::uint16_t>(owed_);
    put_frame(std::span<std::byte, frame_header>(at, frame_header), frame);
    SendWork work;
    work.id = id_of(Kind::send, slot);
    work.opcode = Opcode::send;
    work.local_address = reinterpret_cast<std::uint64_t>(at);
    work.local_key = region_->local_key();
    work.size = Bytes{frame_header + frame.payload};
    if (pair_->post(work) != PostResult::posted) break;
    owed_ = 0;
    if (needs_credit) --credits_;
    ++in_flight_;
    ready_.pop_front();
    sent = true;
  }
  return sent;
}

PostResult RcLane::post(SendWork work) {
  // Frames have their places in the queue for themselves.
  if (pair_ == nullptr) return PostResult::refused;
  if (in_flight_ + sends_ >= queue_depth_) return PostResult::full;
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
  if (post_receive(slot)) ++owed_;
}

void RcLane::return_credits() {
  if (owed_ < std::max(1U, (receives_ - credit_receives) / 2) || !ready_.empty()) return;
  if (const auto room = acquire(true)) send(room->slot, Frame{});
}

bool RcLane::poll(LaneListener& listener) {
  std::array<Completion, 16> completions;
  if (pair_ == nullptr) return false;
  const std::size_t count = queue_->poll(completions);
  for (std::size_t i = 0; i < count && pair_ != nullptr; ++i) handle(completions[i], listener);
  if (pair_ == nullptr) return true;
  const bool sent = flush_ready();
  return_credits();
  return count > 0 || sent;
}

void RcLane::handle(const Completion& completion, LaneListener& listener) {
  const auto kind = static_cast<Kind>(completion.id >> 56U);
  const std::uint64_t value = completion.id & value_mask;
  if (kind != Kind::receive) --in_flight_;
  if (kind == Kind::send) free_.push_back(static_cast<unsigned>(value));
  if (completion.outcome != Outcome::ok) return listener.on_broken(*this, completion.outcome);
  if (kind == Kind::rdma) return listener.on_rdma(value);
  if (kind != Kind::receive) return;
  const auto slot = static_cast<unsigned>(value);
  if (completion.has_immediate) {
    release(slot);
    return listener.on_immediate(completion.immediate, completion.size);
  }
  take_frame(slot, completion.size, listener);
}

void RcLane::take_frame(unsigned slot, Bytes size, LaneListener& listener) {
  const std::byte* at = buffer_ + (sends_ + slot) * stride_;
  const auto frame = size.count < frame_header ? Result<Frame>(Status(Cause::protocol, "the peer said what it must not: less than a frame"))
                                               : parse_frame(std::span<const std::byte, frame_header>(at, frame_header), size.count - frame_header);
  if (!frame.ok()) return listener.on_broken(frame.status());
  credits_ += frame.value().credits;
  if (frame.value().type != FrameType::credit) return listener.on_frame(*this, frame.value(), slot);
  post_receive(slot);  // used no credit, so none is given back
}

}  // namespace gdr::transport
