#include "src/hardware/nic_choice.hpp"

#include <algorithm>
#include <map>

#include "src/hardware/hardware.hpp"

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

std::vector<RankedNic> Hardware::nics_by_distance(DeviceId device, NicUse use) const {
  std::vector<RankedNic> nics;
  const Host& host = host_of(device);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    if (host.devices[i].kind != DeviceKind::nic) continue;
    const DeviceId id{device.host, i};
    if (use != NicUse::sockets && nic(id).rdma.value == "none") continue;
    if (use == NicUse::gpudirect && host.devices[i].gdr == false) continue;
    nics.push_back({id, static_cast<int>(pcie_distance(*graph_, device, id))});
  }
  if (nics.empty() && use == NicUse::gpudirect) return nics_by_distance(device, NicUse::rdma);
  return nics;
}

std::optional<DeviceId> Hardware::nearest_nic(DeviceId device, NicUse use) const {
  std::vector<std::vector<RankedNic>> candidates;
  const Host& host = host_of(device);
  for (std::size_t i = 0; i <= device.device; ++i)
    if (host.devices[i].kind == host.devices[device.device].kind)
      candidates.push_back(nics_by_distance({device.host, i}, use));
  return take_nics_in_turn(candidates).back();
}

}  // namespace gdr
