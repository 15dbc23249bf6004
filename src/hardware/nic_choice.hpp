#pragma once

#include <optional>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

/// A NIC that a device could use; the lowest rank is the best.
struct RankedNic {
  DeviceId nic;
  int rank = 0;
};

/// The NIC of each device, of its best-ranked ones. Devices with the same set of best NICs take
/// them in turn, so that none idles while another is shared. nullopt: no candidates.
std::vector<std::optional<DeviceId>> take_nics_in_turn(
    const std::vector<std::vector<RankedNic>>& candidates);

}  // namespace gdr
