#include "src/common/error.hpp"

#include <fmt/format.h>

namespace gdr {

std::string printable(std::string_view text, std::size_t limit) {
  const bool cut = text.size() > limit;
  if (cut) {
    // Do not cut inside a UTF-8 sequence: its continuation bytes are 10xxxxxx.
    while (limit > 0 && (static_cast<unsigned char>(text[limit]) & 0xc0U) == 0x80U) --limit;
    text = text.substr(0, limit);
  }
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) out += fmt::format("\\x{:02x}", byte);
    else out += c;
  }
  return cut ? out + "..." : out;
}

}  // namespace gdr
