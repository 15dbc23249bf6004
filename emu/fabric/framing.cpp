#include "emu/fabric/framing.hpp"

#include "emu/fabric/wire.hpp"

namespace gdr::fabric {

std::array<std::uint8_t, length_bytes> length_prefix(FrameView frame) {
  std::array<std::uint8_t, length_bytes> prefix{};
  store32(prefix, 0, static_cast<std::uint32_t>(frame.size()));
  return prefix;
}

void FrameDecoder::feed(std::span<const std::uint8_t> bytes) {
  if (bad_) return;
  buffer_.erase(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(begin_));
  begin_ = 0;
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
}

std::optional<Frame> FrameDecoder::next() {
  const auto rest = std::span<const std::uint8_t>(buffer_).subspan(begin_);
  if (bad_ || rest.size() < length_bytes) return std::nullopt;
  const std::size_t length = load32(rest, 0);
  if (length > max_frame_bytes) {
    bad_ = true;
    return std::nullopt;
  }
  if (rest.size() < length_bytes + length) return std::nullopt;
  const auto frame = rest.subspan(length_bytes, length);
  begin_ += length_bytes + length;
  return Frame(frame.begin(), frame.end());
}

}  // namespace gdr::fabric
