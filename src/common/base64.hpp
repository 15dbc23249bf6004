#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gdr {

/// RFC 4648, section 4, in one line.
std::string encode_base64(std::string_view bytes);

/// Line ends are skipped. Throws InputError, which begins with `place`, on other characters.
std::vector<std::uint8_t> decode_base64(std::string_view text, const std::string& place);

}  // namespace gdr
