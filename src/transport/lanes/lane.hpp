#pragma once

#include <optional>
#include <span>

#include "src/transport/lanes/byte_stream.hpp"
#include "src/transport/lanes/frame.hpp"

namespace gdr::transport {

class Lane;

/// Buffers of a lane, and as many credits, that are reserved for control frames.
constexpr unsigned control_buffers = 2;

/// What a lane reports to its connection.
class LaneListener {
 public:
  virtual ~LaneListener() = default;
  /// `slot` holds the payload until the listener gives it back with Lane::release.
  virtual void on_frame(Lane& lane, const Frame& frame, unsigned slot) = 0;
  virtual void on_immediate(std::uint32_t immediate, Bytes size) = 0;
  virtual void on_rdma(
      std::uint64_t operation) = 0;  ///< one of its RDMA work requests has succeeded
  virtual void on_broken(Lane& lane, CompletionStatus status) = 0;  ///< of a queue pair
  virtual void on_broken(const Status& status) = 0;  ///< of the stream, or of the protocol
};

/// Carries frames whole and in order, each from one buffer into another: a queue pair or a stream.
class Lane {
 public:
  struct Room {
    unsigned slot = 0;
    std::span<std::byte> payload;
  };
  virtual ~Lane() = default;
  /// A buffer for one frame; nullopt when none is free now. The last control_buffers are never
  /// given to frames with data.
  virtual std::optional<Room> acquire(bool control) = 0;
  virtual void send(unsigned slot, const Frame& frame) = 0;  ///< takes the buffer back
  virtual void abandon(unsigned slot) = 0;
  virtual std::span<const std::byte> received(unsigned slot) const = 0;
  virtual void release(unsigned slot) = 0;
  virtual bool poll(LaneListener& listener) = 0;   ///< whether anything happened
  [[nodiscard]] virtual bool drained() const = 0;  ///< everything that was sent has left
};

}  // namespace gdr::transport
