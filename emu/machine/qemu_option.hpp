#pragma once

#include <string>
#include <string_view>

namespace gdr::emu {

/// Escapes text for QEMU's NAME=VALUE,...: a comma is written twice.
inline std::string option_value(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == ',') out += c;
  }
  return out;
}

}  // namespace gdr::emu
