#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Fills `function` from its PCI configuration space: ids, class, buses, PCI Express capability,
/// ACS, ATS (PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification, chapter
/// 7). Ordinary users see 64 of its 256 or 4096 bytes; fields beyond what was read keep their
/// value, and fewer than 64 bytes are ignored. Circular capability lists end.
void read_config_space(const std::vector<std::uint8_t>& bytes, Function& function);

/// The bytes of "10 de b0 20" or "10deb020"; empty for any other text.
std::vector<std::uint8_t> parse_hex(std::string_view text);

}  // namespace gdr::observed
