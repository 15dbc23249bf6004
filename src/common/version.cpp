#include "src/common/version.hpp"

#include <array>
#include <charconv>

namespace gdr {
namespace {

std::array<int, 3> numbers(std::string_view text) {
  std::array<int, 3> out{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (int& number : out) {
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc{} || next == end || *next != '.') break;
    at = next + 1;
  }
  return out;
}

}  // namespace

bool version_before(std::string_view version, std::string_view other) {
  return numbers(version) < numbers(other);
}

}  // namespace gdr
