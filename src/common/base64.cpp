#include "src/common/base64.hpp"

#include <fmt/format.h>

#include "src/common/error.hpp"

namespace gdr {
namespace {

constexpr std::string_view digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const auto at = [&](std::size_t n) {
      return i + n < bytes.size() ? static_cast<unsigned char>(bytes[i + n]) : 0U;
    };
    const unsigned three = at(0) << 16U | at(1) << 8U | at(2);
    for (std::size_t n = 0; n < 4; ++n)
      text += i + n > bytes.size() ? '=' : digits[three >> (18 - 6 * n) & 0x3fU];
  }
  return text;
}

std::vector<std::uint8_t> decode_base64(std::string_view text, const std::string& place) {
  std::vector<std::uint8_t> bytes;
  unsigned held = 0;
  int bits = 0;
  for (const char c : text) {
    if (c == '=' || c == '\n' || c == '\r') continue;
    const auto value = digits.find(c);
    if (value == std::string_view::npos) throw InputError(fmt::format("{}: not base64", place));
    held = held << 6U | static_cast<unsigned>(value);
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes.push_back(static_cast<std::uint8_t>(held >> static_cast<unsigned>(bits) & 0xffU));
  }
  return bytes;
}

}  // namespace gdr
