#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// What a PCI configuration space says of its function: ids, class, buses, PCI Express capability,
/// ACS, ATS (PCI Local Bus Specification 3.0, chapter 6; PCI Express Base Specification, chapter
/// 7). 64 bytes (an ordinary user's view) say less than 256 or 4096. Fields that are not there stay
/// as they are; circular capability lists end. Too short a space (below 64 bytes) says nothing.
void read_config_space(const std::vector<std::uint8_t>& bytes, Function& function);

/// "10 de b0 20" or "10deb020" as bytes; empty when it is no such text.
std::vector<std::uint8_t> parse_hex(std::string_view text);

}  // namespace gdr::observed
