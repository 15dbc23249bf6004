#include "src/transport/lanes/crc32c.hpp"

#include <boost/crc.hpp>

namespace gdr::transport {
namespace {

using Crc = boost::crc_optimal<32, 0x1edc6f41, 0xffffffff, 0xffffffff, true, true>;

}  // namespace

void Crc32c::add(std::span<const std::byte> bytes) {
  Crc crc(remainder_);
  crc.process_bytes(bytes.data(), bytes.size());
  remainder_ = crc.get_interim_remainder();
}

std::uint32_t Crc32c::value() const { return Crc(remainder_).checksum(); }

}  // namespace gdr::transport
