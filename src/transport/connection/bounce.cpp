#include "src/transport/connection/bounce.hpp"

#include <algorithm>
#include <vector>

#include "src/transport/lanes/crc32c.hpp"

namespace gdr::transport {

Bounce::Bounce(memory::DeviceMemory& memory)
    : memory_(memory), stream_out_(memory.create_stream()), stream_in_(memory.create_stream()) {}

Bounce::~Bounce() {
  memory_.destroy_stream(stream_out_);
  memory_.destroy_stream(stream_in_);
}

Status Bounce::copy_out(Lane& lane, Lane::Room room, const Frame& frame, memory::DevicePointer from,
                        std::uint64_t operation) {
  Status copied = memory_.copy_out(room.payload.data(), from, Bytes{frame.payload}, stream_out_);
  const auto event = copied.ok() ? memory_.record(stream_out_) : Result<memory::Event>(copied);
  if (!event.ok()) {
    (void)memory_.synchronize(stream_out_);
    lane.abandon(room.slot);
    return event.status();
  }
  out_.push_back({&lane, room.slot, frame, event.value(), operation});
  return {};
}

Result<std::optional<Bounce::CopyOut>> Bounce::next_sent() {
  if (out_.empty()) return std::optional<CopyOut>();
  const CopyOut copy = out_.front();
  const auto done = memory_.done(copy.event);
  if (!done.ok()) {
    out_.pop_front();
    return done.status();
  }
  if (!done.value()) return std::optional<CopyOut>();
  out_.pop_front();
  copy.lane->send(copy.slot, copy.frame);
  return std::optional<CopyOut>(copy);
}

Bounce::Started Bounce::copy_in(Lane& lane, unsigned slot, const Frame& frame,
                                memory::DevicePointer to) {
  Status copied = memory_.copy_in(to, lane.received(slot).data(), Bytes{frame.payload}, stream_in_);
  if (!copied.ok()) return {std::move(copied), {}};
  const auto event = memory_.record(stream_in_);
  if (!event.ok()) return {{}, event.status()};
  in_.push_back({&lane, slot, frame, event.value()});
  return {};
}

Result<std::optional<Bounce::CopyIn>> Bounce::next_placed() {
  if (in_.empty()) return std::optional<CopyIn>();
  const CopyIn copy = in_.front();
  const auto done = memory_.done(copy.event);
  if (!done.ok()) {
    in_.pop_front();
    return done.status();
  }
  if (!done.value()) return std::optional<CopyIn>();
  in_.pop_front();
  copy.lane->release(copy.slot);
  return std::optional<CopyIn>(copy);
}

void Bounce::stop() {
  (void)memory_.synchronize(stream_out_);
  (void)memory_.synchronize(stream_in_);
  // done() releases an event once it returns true.
  const auto give_back = [this](memory::Event event) {
    for (auto done = memory_.done(event); done.ok() && !done.value();) done = memory_.done(event);
  };
  for (const CopyOut& copy : out_) give_back(copy.event);
  for (const CopyIn& copy : in_) give_back(copy.event);
  out_.clear();
  in_.clear();
}

Result<std::uint32_t> Bounce::checksum(memory::DevicePointer pointer, Bytes size) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(size.count, std::uint64_t{256} << 10U));
  Crc32c crc;
  for (std::uint64_t at = 0; at < size.count; at += piece.size()) {
    const Bytes part{std::min<std::uint64_t>(piece.size(), size.count - at)};
    Status copied = memory_.copy_out(piece.data(), pointer + Bytes{at}, part, stream_out_);
    if (copied.ok()) copied = memory_.synchronize(stream_out_);
    if (!copied.ok()) return copied;
    crc.add({piece.data(), part.count});
  }
  return crc.value();
}

Result<std::uint64_t> Bounce::apply_atomic(memory::DevicePointer at, bool swap,
                                           std::uint64_t operand, std::uint64_t desired) {
  std::uint64_t old = 0;
  Status done = memory_.synchronize(stream_in_);
  if (done.ok()) done = memory_.copy_out(&old, at, Bytes{8}, stream_in_);
  if (done.ok()) done = memory_.synchronize(stream_in_);
  const std::uint64_t now = swap ? (old == operand ? desired : old) : old + operand;
  if (done.ok()) done = memory_.copy_in(at, &now, Bytes{8}, stream_in_);
  if (done.ok()) done = memory_.synchronize(stream_in_);
  if (!done.ok()) return done;
  return old;
}

}  // namespace gdr::transport
