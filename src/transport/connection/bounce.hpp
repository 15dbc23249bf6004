#pragma once

#include <deque>
#include <optional>

#include "src/memory/device_memory.hpp"
#include "src/transport/lanes/lane.hpp"

namespace gdr::transport {

/// Copies between device memory and host buffers, most of them bounce buffers of lanes. Copies of
/// one direction end in the order in which they were started. An error status ends the connection,
/// unless stated otherwise.
class Bounce {
 public:
  explicit Bounce(memory::DeviceMemory& memory);
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  /// Copies device memory into a buffer that `lane` gave, to be sent with `frame`.
  Status copy_out(Lane& lane, Lane::Room room, const Frame& frame, memory::DevicePointer from,
                  std::uint64_t operation);
  struct CopyOut {
    Lane* lane;
    unsigned slot;
    Frame frame;
    memory::Event event;
    std::uint64_t operation;
  };
  /// The next copy that has ended; its buffer is with its lane. nullopt: none has ended.
  Result<std::optional<CopyOut>> next_sent();

  /// Copies a received buffer into device memory. After an error nothing is in progress.
  struct Started {
    Status refused;  ///< the destination cannot be written; the connection stays open
    Status broken;
  };
  Started copy_in(Lane& lane, unsigned slot, const Frame& frame, memory::DevicePointer to);
  struct CopyIn {
    Lane* lane;
    unsigned slot;
    Frame frame;
    memory::Event event;
  };
  /// The next copy that has ended; the lane has its buffer back. nullopt: none has ended.
  Result<std::optional<CopyIn>> next_placed();

  [[nodiscard]] bool idle() const { return out_.empty() && in_.empty(); }
  [[nodiscard]] bool sent_all() const { return out_.empty(); }
  /// Waits until no copy touches a buffer, and forgets them.
  void stop();

  /// CRC32C of device memory, read by the copy engine piece by piece. An error is the operation's.
  Result<std::uint32_t> checksum(memory::DevicePointer pointer, Bytes size);
  /// The peer's atomic on 8 bytes of device memory; returns the old value. It is atomic because
  /// only this thread is inside the connection. An error is the operation's.
  Result<std::uint64_t> apply_atomic(memory::DevicePointer at, bool swap, std::uint64_t operand,
                                     std::uint64_t desired);

 private:
  memory::DeviceMemory& memory_;
  const memory::Stream stream_out_;
  const memory::Stream stream_in_;
  std::deque<CopyOut> out_;
  std::deque<CopyIn> in_;
};

}  // namespace gdr::transport
