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

/// Parses "gen4x16"; throws InputError naming what is allowed.
PcieLink parse_pcie_link(std::string_view text);
std::string to_string(PcieLink link);

/// The faster generation and the wider width that both ends can do.
PcieLink common_link(PcieLink a, PcieLink b);

/// Gigatransfers per second and lane of a generation: 2.5, 5, 8, 16, 32, 64 (PCI Express Base
/// Specification).
double gigatransfers_per_lane(int generation);

}  // namespace gdr
