#include "src/catalog/parameter_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>

namespace gdr {
namespace {

bool is_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::string percent(const std::int64_t& value) {
  return value < 1 || value > 100 ? "an integer from 1 to 100" : "";
}

std::string payload_limit(const Bytes& value) {
  const bool good = std::has_single_bit(value.count) && value.count >= 128 && value.count <= 4096;
  return good ? "" : "a power of two from 128B to 4KiB";
}

std::string some_text(const std::string& value) { return value.empty() ? "a text" : ""; }

std::string speed_grade(const std::string& value) {
  const auto dash = value.find('-');
  const bool good = dash != std::string::npos &&
                    value.substr(0, dash).find("DDR") != std::string::npos &&
                    is_digits(value.substr(dash + 1));
  return good ? "" : "a speed grade such as DDR4-3200 or LPDDR5X-8533";
}

std::string one_of_words(std::initializer_list<std::string_view> words, const std::string& value) {
  const bool found = std::find(words.begin(), words.end(), value) != words.end();
  return found ? "" : fmt::format("{}", fmt::join(words, ", "));
}

bool is_pci_id(std::string_view text) {
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (text.size() != 9 || text[4] != ':') return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (i != 4 && !hex(text[i])) return false;
  return true;
}

}  // namespace gdr
