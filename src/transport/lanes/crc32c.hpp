#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace gdr::transport {

/// CRC32C (Castagnoli, as in iSCSI) of bytes that come piece by piece.
class Crc32c {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint32_t value() const;

 private:
  std::uint32_t remainder_ = 0xffffffffU;
};

}  // namespace gdr::transport
