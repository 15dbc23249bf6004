#pragma once

#include <compare>
#include <string>
#include <string_view>

namespace gdr {

/// A PCIe link's generation (1 to 6) and lanes (1, 2, 4, 8, 12, 16, 32). Written "gen4x16".
struct PcieLink {
  int generation = 0;
  int width = 0;
  auto operator<=>(const PcieLink&) const = default;
};

/// Parses "gen4x16". Throws InputError that names what is allowed.
PcieLink parse_pcie_link(std::string_view text);
std::string to_string(PcieLink link);

/// The highest generation and the largest width that both ends support.
PcieLink common_link(PcieLink a, PcieLink b);

/// GT/s per lane of a generation: 2.5, 5, 8, 16, 32, 64 (PCI Express Base Specification).
double gigatransfers_per_lane(int generation);

}  // namespace gdr
