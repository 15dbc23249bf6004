#pragma once

#include <optional>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

/// The use of a NIC, which decides the NICs that count.
enum class NicUse {
  sockets,    ///< every NIC
  rdma,       ///< those that do RDMA
  gpudirect,  ///< of these, those whose driver does not deny GPUDirect RDMA; if none is left, all
              ///< that do RDMA
};

/// A NIC that a device could use; the lowest rank is the best.
struct RankedNic {
  DeviceId nic;
  int rank = 0;
};

/// The NIC of each device, of its best-ranked ones. Devices with the same set of best NICs are
/// assigned round-robin, so that no NIC idles while another is shared. nullopt: no candidates.
std::vector<std::optional<DeviceId>> take_nics_in_turn(
    const std::vector<std::vector<RankedNic>>& candidates);

}  // namespace gdr
