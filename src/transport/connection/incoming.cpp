#include "src/transport/connection/incoming.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {

namespace {

Status not_shared(const Frame& frame) {
  return {Cause::remote_access, fmt::format("{} at {:#x} are in no range that is shared",
                                            to_string(Bytes{frame.total}), frame.address)};
}

}  // namespace

Result<Incoming::StagedWrite*> Incoming::staged_write_of(const Frame& frame) {
  auto [found, fresh] = staged_writes_.try_emplace(frame.operation);
  StagedWrite& write = found->second;
  if (fresh) {
    write.address = frame.address;
    write.total = Bytes{frame.total};
    if ((frame.flags & flag_immediate) != 0)
      write.immediate = static_cast<std::uint32_t>(frame.value);
    if (!ranges_.cover(frame.address, frame.total)) write.refused = not_shared(frame);
  } else if (write.address != frame.address || write.total.count != frame.total) {
    return protocol_error("a write that changes its place");
  }
  return &write;
}

Status Incoming::take_data(Lane& lane, const Frame& frame, unsigned slot) {
  std::optional<memory::DevicePointer> to;
  StagedWrite* write = nullptr;
  if (frame.type == FrameType::put) {
    const auto found = staged_write_of(frame);
    if (!found.ok()) return found.status();
    write = found.value();
    if (write->refused.ok()) to = memory::DevicePointer{frame.address} + Bytes{frame.offset};
  } else {
    const auto place = outgoing_.place_of(frame);
    if (!place.ok()) return place.status();
    to = place.value();
    if (!to) {
      lane.release(slot);
      return {};
    }
  }
  if (lanes_.queue_pairs() > 0) bounced_.count += frame.payload;
  if (to && frame.payload > 0) {
    Bounce::Started copy = bounce_.copy_in(lane, slot, frame, *to);
    if (!copy.broken.ok()) return copy.broken;
    if (copy.refused.ok()) return {};
    if (write != nullptr) write->refused = Status(Cause::memory_freed, copy.refused.text());
  }
  lane.release(slot);
  placed(frame);
  return {};
}

void Incoming::placed(const Frame& frame) {
  if (frame.type != FrameType::put)
    return outgoing_.piece_placed(frame.operation, Bytes{frame.payload});
  const auto found = staged_writes_.find(frame.operation);
  if (found == staged_writes_.end()) return;
  StagedWrite& write = found->second;
  write.placed.count += frame.payload;
  if (write.placed < write.total) return;
  if (write.refused.ok() && write.immediate) arrivals_.push_back({*write.immediate, write.total});
  control_.add_done(frame.operation, write.refused);
  staged_writes_.erase(found);
}

/// The NIC does not say where the bytes went: everything that the peer may write is flushed.
Status Incoming::take_immediate(std::uint32_t immediate, Bytes size) {
  if (engine_.flushes)
    if (Status flushed = ranges_.flush(); !flushed.ok()) return flushed;
  arrivals_.push_back({immediate, size});
  return {};
}

/// A write over several queue pairs is complete when each of them has sent a notify: a notify
/// cannot overtake the bytes before it.
Status Incoming::take_notify(const Frame& frame) {
  if (++notified_[frame.operation] < frame.extra) return {};
  notified_.erase(frame.operation);
  const auto immediate = static_cast<std::uint32_t>(frame.value);
  if (Status taken = take_immediate(immediate, Bytes{frame.total}); !taken.ok()) return taken;
  control_.add_done(frame.operation, {});
  return {};
}

Status Incoming::take_message(const Frame& frame, std::span<const std::byte> payload) {
  auto keys = take_keys(payload);
  if (!keys.ok()) return keys.status();
  if (messages_.size() >= 65536) return protocol_error("more than 65536 sends without a receive");
  Message message{frame.operation, frame.address, Bytes{frame.total}, {}, std::move(keys.value())};
  if ((frame.flags & flag_checked) != 0) message.crc = static_cast<std::uint32_t>(frame.value);
  messages_.push_back(std::move(message));
  match_messages();
  return {};
}

void Incoming::match_messages() {
  while (!messages_.empty() && outgoing_.has_receive()) {
    Message message = std::move(messages_.front());
    messages_.pop_front();
    outgoing_.receive(std::move(message));
  }
}

void Incoming::take_get(const Frame& frame) {
  if (!ranges_.cover(frame.address, frame.total))
    return control_.add_done(frame.operation, not_shared(frame));
  outgoing_.take_get(frame);
}

void Incoming::take_atomic(const Frame& frame) {
  if (!ranges_.cover(frame.address, 8) || frame.address % 8 != 0)
    return control_.add_done(frame.operation, not_shared(frame));
  const auto old = bounce_.apply_atomic({frame.address}, (frame.flags & flag_swap) != 0,
                                        frame.value, frame.extra);
  control_.add_done(frame.operation, old.status(), old.ok() ? old.value() : 0);
}

void Incoming::take_verify(const Frame& frame) {
  if (!ranges_.cover(frame.address, frame.total))
    return control_.add_done(frame.operation, not_shared(frame));
  const memory::DevicePointer at{frame.address};
  const Bytes size{frame.total};
  Status right = engine_.flush(at, size);
  if (right.ok()) {
    const auto crc = bounce_.checksum(at, size);
    if (!crc.ok()) right = crc.status();
    else if (crc.value() != frame.value)
      right = Status(Cause::corrupt,
                     fmt::format("{} at {:#x}: CRC32C {:08x} there, {:08x} here", to_string(size),
                                 frame.address, crc.value(), frame.value));
  }
  if (right.ok() && (frame.flags & flag_immediate) != 0)
    arrivals_.push_back({static_cast<std::uint32_t>(frame.extra), size});
  control_.add_done(frame.operation, right);
}

std::optional<Arrival> Incoming::take_arrival() {
  if (arrivals_.empty()) return std::nullopt;
  const Arrival arrival = arrivals_.front();
  arrivals_.pop_front();
  return arrival;
}

bool Incoming::uses(const memory::PointerInfo& allocation) const {
  return std::any_of(staged_writes_.begin(), staged_writes_.end(), [&](const auto& entry) {
    return allocation.contains({entry.second.address});
  });
}

void Incoming::clear() {
  staged_writes_.clear();
  messages_.clear();
}

}  // namespace gdr::transport
