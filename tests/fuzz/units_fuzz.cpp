#include <cstddef>
#include <cstdint>
#include <string_view>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/common/pcie_link.hpp"
#include "src/common/units.hpp"

namespace {

/// An accepted value must be the same after printing and parsing.
template <typename Parse>
void round_trip(std::string_view text, Parse parse) {
  try {
    const auto value = parse(text);
    gdr::check(parse(to_string(value)) == value, "the value differs after printing and parsing");
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  round_trip(text, gdr::parse_bytes);
  round_trip(text, gdr::parse_bandwidth);
  round_trip(text, gdr::parse_duration);
  round_trip(text, gdr::parse_pcie_link);
  return 0;
}
