#include "src/topology/acs.hpp"

#include <array>
#include <string_view>

namespace gdr {
namespace {

constexpr std::array<std::string_view, 7> names{"SV", "TB", "RR", "CR", "UF", "EC", "DT"};

}  // namespace

std::string to_string(Acs acs) {
  std::string text;
  for (std::size_t bit = 0; bit < names.size(); ++bit)
    if (acs.has(static_cast<std::uint16_t>(1U << bit)))
      text += (text.empty() ? "" : "+") + std::string(names.at(bit));
  return text.empty() ? "none" : text;
}

json::Value to_json(Acs acs) {
  json::Array bits;
  for (std::size_t bit = 0; bit < names.size(); ++bit)
    if (acs.has(static_cast<std::uint16_t>(1U << bit))) bits.emplace_back(names.at(bit));
  return bits;
}

Acs read_acs(const json::Node& node) {
  Acs acs;
  for (const json::Node& bit : node.array())
    acs.bits = static_cast<std::uint16_t>(acs.bits | (1U << bit.choice(names)));
  return acs;
}

}  // namespace gdr
