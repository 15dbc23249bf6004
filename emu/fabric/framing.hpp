#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emu/fabric/frame.hpp"

namespace gdr::fabric {

/// QEMU's `-netdev stream` and `-netdev socket` put the length of a frame in front of it, four
/// bytes in network order.
inline constexpr std::size_t length_bytes = 4;
std::array<std::uint8_t, length_bytes> length_prefix(FrameView frame);

/// Cuts a stream of bytes into frames. A length above 64 KiB means that the stream is out of step,
/// from which there is no way back.
class FrameDecoder {
 public:
  void feed(std::span<const std::uint8_t> bytes);
  /// The next whole frame (possibly empty: a length of 0 keeps the step); nullopt: more bytes are
  /// needed, or the stream is bad.
  std::optional<Frame> next();
  [[nodiscard]] bool bad() const { return bad_; }
  /// True when the stream must not end here.
  [[nodiscard]] bool mid_frame() const { return begin_ < buffer_.size(); }

 private:
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;  // what lies before it was given out
  bool bad_ = false;
};

}  // namespace gdr::fabric
