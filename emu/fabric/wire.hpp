#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gdr::fabric {

/// Reads and writes numbers in network order. The caller has checked the size.
inline std::uint16_t load16(std::span<const std::uint8_t> bytes, std::size_t at) {
  return static_cast<std::uint16_t>((bytes[at] << 8U) | bytes[at + 1]);
}
inline std::uint32_t load24(std::span<const std::uint8_t> bytes, std::size_t at) {
  return (std::uint32_t{bytes[at]} << 16U) | load16(bytes, at + 1);
}
inline std::uint32_t load32(std::span<const std::uint8_t> bytes, std::size_t at) {
  return (std::uint32_t{load16(bytes, at)} << 16U) | load16(bytes, at + 2);
}
inline void store16(std::span<std::uint8_t> bytes, std::size_t at, std::uint16_t value) {
  bytes[at] = static_cast<std::uint8_t>(value >> 8U);
  bytes[at + 1] = static_cast<std::uint8_t>(value);
}
inline void store32(std::span<std::uint8_t> bytes, std::size_t at, std::uint32_t value) {
  store16(bytes, at, static_cast<std::uint16_t>(value >> 16U));
  store16(bytes, at + 2, static_cast<std::uint16_t>(value));
}

}  // namespace gdr::fabric
