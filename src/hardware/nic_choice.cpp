#include "src/hardware/nic_choice.hpp"

#include <algorithm>
#include <map>

namespace gdr {

std::vector<std::optional<DeviceId>> take_nics_in_turn(
    const std::vector<std::vector<RankedNic>>& candidates) {
  std::vector<std::optional<DeviceId>> chosen;
  std::map<std::vector<DeviceId>, std::size_t> turns;
  for (const std::vector<RankedNic>& nics : candidates) {
    const auto best =
        std::min_element(nics.begin(), nics.end(),
                         [](const RankedNic& a, const RankedNic& b) { return a.rank < b.rank; });
    std::vector<DeviceId> equal;
    for (const RankedNic& nic : nics)
      if (nic.rank == best->rank) equal.push_back(nic.nic);
    if (equal.empty()) chosen.emplace_back();
    else chosen.emplace_back(equal[turns[equal]++ % equal.size()]);
  }
  return chosen;
}

}  // namespace gdr
