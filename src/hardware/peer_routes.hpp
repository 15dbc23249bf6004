#pragma once

#include <optional>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/hardware/distance.hpp"
#include "src/hardware/graph.hpp"

namespace gdr {

/// How the TLPs of an initiator and its target travel over PCIe, with what ACS and the IOMMU do to
/// them.
struct PeerWays {
  Route request;  ///< posted writes and read requests, initiator to target, with the detour to the
                  ///< root port if there is one
  Route completion;  ///< target to initiator
  bool parts_at_switch = false;
  VertexId turn = 0;  ///< the switch where the way turns round, when parts_at_switch
  std::optional<bool>
      requests_redirected;  ///< by RR or EC; nullopt: the bits of the port are not known
  std::optional<bool> completions_redirected;  ///< by CR
  bool direct_translated =
      false;  ///< DT lets the initiator's ATS-translated requests pass where RR or EC stand
  bool translated =
      false;  ///< the IOMMU's addresses take the requests up to the root complex, whatever ACS says

  /// True, false, or nullopt when neither is known to be redirected and one is not known.
  [[nodiscard]] std::optional<bool> redirected() const;
};

/// Both devices in one host.
PeerWays peer_ways(const Graph& graph, const ModelLibrary& models, DeviceId initiator,
                   DeviceId target);

/// Devices whose upper port lies on the way from `device` up to the vertex `turn`: the device
/// itself first, then the switches that it hangs below. The last one's port is the one that
/// decides.
std::vector<DeviceId> ports_below(const Graph& graph, DeviceId device, VertexId turn);

/// The control bits of the port above a device: those of the file, or none where the switch has no
/// such capability.
std::optional<Acs> port_acs(const Graph& graph, const ModelLibrary& models, DeviceId device);

}  // namespace gdr
