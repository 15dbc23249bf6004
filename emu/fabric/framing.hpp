#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "emu/fabric/frame.hpp"

namespace gdr::fabric {

/// QEMU's `-netdev stream` and `-netdev socket` prefix each frame with its length, four bytes in
/// network order.
inline constexpr std::size_t length_bytes = 4;
std::array<std::uint8_t, length_bytes> length_prefix(FrameView frame);

/// Splits a byte stream into frames. A length above 64 KiB means that the framing is lost, which
/// cannot be repaired.
class FrameDecoder {
 public:
  void feed(std::span<const std::uint8_t> bytes);
  /// The next complete frame, empty for a length of 0; nullopt: more bytes are needed, or the
  /// stream is bad.
  std::optional<Frame> next();
  [[nodiscard]] bool bad() const { return bad_; }
  /// True if an incomplete frame is pending.
  [[nodiscard]] bool mid_frame() const { return begin_ < buffer_.size(); }

 private:
  std::vector<std::uint8_t> buffer_;
  std::size_t begin_ = 0;  // the bytes before it have been delivered
  bool bad_ = false;
};

}  // namespace gdr::fabric
