#include "src/transport/lanes/stream_lane.hpp"

#include <algorithm>

#include "src/common/check.hpp"

namespace gdr::transport {

StreamLane::StreamLane(std::unique_ptr<ByteStream> stream, Bytes chunk, unsigned depth)
    : stream_(std::move(stream)) {
  const unsigned count = depth + control_buffers;
  const std::size_t size = std::max<std::size_t>(chunk.count, largest_control);
  sends_.assign(count, std::vector<std::byte>(size));
  receives_.assign(count, std::vector<std::byte>(size));
  for (unsigned slot = 0; slot < count; ++slot) {
    free_.push_back(slot);
    free_receives_.push_back(slot);
  }
}

std::optional<Lane::Room> StreamLane::acquire(bool control) {
  if (broken_ || ending_ || free_.size() <= (control ? 0 : control_buffers)) return std::nullopt;
  const unsigned slot = free_.back();
  free_.pop_back();
  return Room{slot, sends_[slot]};
}

void StreamLane::send(unsigned slot, const Frame& frame) {
  check(frame.payload <= sends_[slot].size(), "a frame that is longer than its buffer");
  Sending& sending = sending_.emplace_back();
  sending.slot = slot;
  sending.payload = frame.payload;
  put_frame(sending.header, frame);
  if (carries_data(frame.type)) data_sent_.count += frame.payload;
}

/// A failed write is no error yet: the peer may have sent the reason, which is still to be read.
bool StreamLane::write() {
  bool wrote = false;
  while (!sending_.empty() && !broken_) {
    Sending& sending = sending_.front();
    const std::span<const std::byte> payload(sends_[sending.slot].data(), sending.payload);
    const auto part = sending.done < frame_header
                          ? std::span<const std::byte>(sending.header).subspan(sending.done)
                          : payload.subspan(sending.done - frame_header);
    const auto count = stream_->write_some(part);
    if (count.ok() && count.value() == 0 && !part.empty()) break;
    if (count.ok()) {
      wrote = true;
      sending.done += count.value();
      if (sending.done < frame_header + sending.payload) continue;
    }
    free_.push_back(sending.slot);
    sending_.pop_front();
  }
  return wrote;
}

void StreamLane::end(const Frame& last, std::span<const std::byte> payload) {
  while (!sending_.empty() && sending_.back().done == 0) {
    free_.push_back(sending_.back().slot);
    sending_.pop_back();
  }
  const auto room = acquire(true);
  ending_ = true;
  lingers_ = last.type == FrameType::abort || data_sent_.count + data_received_.count > 0;
  if (!room) return;
  std::copy(payload.begin(), payload.end(), room->payload.begin());
  Frame frame = last;
  frame.payload = static_cast<std::uint32_t>(payload.size());
  send(room->slot, frame);
}

bool StreamLane::ended() {
  write();
  if (sending_.empty() && lingers_ && !said_all_) {
    said_all_ = true;
    stream_->end_writing();
  }
  std::array<std::byte, 4096> unread;
  for (int i = 0; i < 64 && !broken_; ++i) {
    const auto count = stream_->read_some(unread);
    broken_ = !count.ok();
    if (broken_ || count.value() == 0) break;
  }
  return broken_ || (sending_.empty() && !lingers_);
}

bool StreamLane::fill(std::span<std::byte> into, LaneListener& listener, bool& read_any) {
  while (filled_ < into.size()) {
    const auto count = stream_->read_some(into.subspan(filled_));
    if (!count.ok()) {
      broken_ = true;
      listener.on_broken(count.status());
      return false;
    }
    if (count.value() == 0) return false;
    read_any = true;
    filled_ += count.value();
  }
  filled_ = 0;
  return true;
}

bool StreamLane::read(LaneListener& listener) {
  bool read_any = false;
  while (!broken_ && !ending_ && (frame_ || !free_receives_.empty())) {
    if (!frame_) {
      if (!fill(header_, listener, read_any)) break;
      const auto frame = parse_frame(header_, receives_.front().size());
      if (!frame.ok()) {
        broken_ = true;
        listener.on_broken(frame.status());
        break;
      }
      frame_ = frame.value();
      // Take the slot at once: others are given back while the payload is still arriving.
      slot_ = free_receives_.back();
      free_receives_.pop_back();
    }
    if (!fill({receives_[slot_].data(), frame_->payload}, listener, read_any)) break;
    if (carries_data(frame_->type)) data_received_.count += frame_->payload;
    const Frame frame = *frame_;
    frame_.reset();
    listener.on_frame(*this, frame, slot_);
  }
  return read_any;
}

bool StreamLane::poll(LaneListener& listener) {
  if (broken_ || ending_) return false;
  const bool wrote = write();
  const bool read_any = read(listener);
  return wrote || read_any;
}

}  // namespace gdr::transport
