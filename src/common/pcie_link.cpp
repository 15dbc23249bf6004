#include "src/common/pcie_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace gdr {
namespace {

constexpr std::array widths{1, 2, 4, 8, 12, 16, 32};
constexpr std::array<double, 6> rates{2.5, 5, 8, 16, 32, 64};

}  // namespace

PcieLink parse_pcie_link(std::string_view text) {
  const auto refuse = [&]() -> void {
    throw InputError(
        fmt::format("\"{}\" is not a PCIe link; write gen1 to gen6, x and one of 1, 2, 4, 8, 12, "
                    "16, 32 lanes, as in \"gen4x16\"",
                    printable(text, 40)));
  };
  PcieLink link;
  const char* const end = text.data() + text.size();
  if (!text.starts_with("gen")) refuse();
  const auto generation = std::from_chars(text.data() + 3, end, link.generation);
  if (generation.ec != std::errc{} || generation.ptr == end || *generation.ptr != 'x') refuse();
  const auto width = std::from_chars(generation.ptr + 1, end, link.width);
  if (width.ec != std::errc{} || width.ptr != end) refuse();
  if (link.generation < 1 || link.generation > 6 ||
      std::find(widths.begin(), widths.end(), link.width) == widths.end())
    refuse();
  return link;
}

std::string to_string(PcieLink link) {
  return fmt::format("gen{}x{}", link.generation, link.width);
}

PcieLink common_link(PcieLink a, PcieLink b) {
  return {std::min(a.generation, b.generation), std::min(a.width, b.width)};
}

double gigatransfers_per_lane(int generation) {
  check(generation >= 1 && generation <= 6, "PCIe generation out of range");
  return rates.at(static_cast<std::size_t>(generation - 1));
}

}  // namespace gdr
