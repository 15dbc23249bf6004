#pragma once

#include <deque>
#include <map>
#include <optional>

#include "src/transport/connection/outgoing.hpp"

namespace gdr::transport {

/// What the peer asks of this side: its writes through bounce buffers, its sends until a receive
/// takes them, its reads, atomics and checks, and the arrivals to report to the user. An error
/// status ends the connection.
class Incoming {
 public:
  Incoming(ProgressEngine& engine, LaneSet& lanes, Bounce& bounce, Control& control,
           SharedRanges& ranges, Outgoing& outgoing)
      : engine_(engine),
        lanes_(lanes),
        bounce_(bounce),
        control_(control),
        ranges_(ranges),
        outgoing_(outgoing) {}
  Incoming(const Incoming&) = delete;
  Incoming& operator=(const Incoming&) = delete;

  /// Bytes for device memory. The lane has its buffer back when the copy engine has taken them.
  Status take_data(Lane& lane, const Frame& frame, unsigned slot);
  /// The bytes of this frame are in device memory.
  void placed(const Frame& frame);

  Status take_immediate(std::uint32_t immediate, Bytes size);
  Status take_notify(const Frame& frame);
  Status take_message(const Frame& frame, std::span<const std::byte> payload);
  void take_get(const Frame& frame);
  void take_atomic(const Frame& frame);
  void take_verify(const Frame& frame);
  /// Matches sends with receives, each in its own order.
  void match_messages();

  std::optional<Arrival> take_arrival();
  /// Whether a write of the peer is being placed in the allocation.
  [[nodiscard]] bool uses(const memory::PointerInfo& allocation) const;
  [[nodiscard]] Bytes bounced_bytes() const { return bounced_; }
  /// Discards what is unfinished. Arrivals stay.
  void clear();

 private:
  /// A write of the peer through bounce buffers.
  struct StagedWrite {
    std::uint64_t address = 0;
    Bytes total;
    Bytes placed;
    std::optional<std::uint32_t> immediate;
    Status refused;
  };
  Result<StagedWrite*> staged_write_of(const Frame& frame);

  ProgressEngine& engine_;
  LaneSet& lanes_;
  Bounce& bounce_;
  Control& control_;
  SharedRanges& ranges_;
  Outgoing& outgoing_;
  std::map<std::uint64_t, StagedWrite> staged_writes_;  // by the peer's number
  std::map<std::uint64_t, std::uint64_t>
      notified_;  // how many queue pairs have notified, by number
  std::deque<Message> messages_;
  std::deque<Arrival> arrivals_;
  Bytes bounced_;
};

}  // namespace gdr::transport
