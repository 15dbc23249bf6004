#pragma once

#include <vector>

#include "src/hardware/fact.hpp"
#include "src/hardware/graph.hpp"

namespace gdr {

/// Something that decides the route of peer traffic and that the file does not state.
struct OpenQuestion {
  enum class Kind {
    acs,  ///< the ACS control bits of the port above the device
    ats,  ///< whether the device has ATS on, where the port above it redirects and has DT
  };
  Kind kind = Kind::acs;
  VertexId device = 0;
  bool operator==(const OpenQuestion&) const = default;
};

/// How the TLPs of an initiator and its target travel over PCIe, with what ACS, ATS and the IOMMU
/// do to them. Where the file leaves the route open, these are the routes that the simulator takes:
/// direct where the ACS bits are not stated, over the root port where ATS is not.
struct PeerRoutes {
  Route direct;      ///< initiator to target, without redirection
  Route request;     ///< posted writes and read requests, initiator to target, with the detour to
                     ///< the root port if there is one
  Route completion;  ///< target to initiator, likewise
  bool parts_at_switch = false;
  VertexId turn = 0;                  ///< the switch where the route turns, when parts_at_switch
  Fact<bool> requests_redirected;     ///< by RR or EC of the port that decides
  Fact<bool> completions_redirected;  ///< by CR
  bool direct_translated =
      false;  ///< DT lets the initiator's ATS-translated requests pass where RR or EC stand
  bool translated = false;  ///< below a switch: the IOMMU's addresses take the requests up to the
                            ///< root complex, whatever the ACS bits are
  std::vector<OpenQuestion> open;  ///< what the file would have to state for both routes to be
                                   ///< sure, that of requests first

  /// Whether requests or completions go up to the root complex and come back down: known when one
  /// of them is known to do so, or both are known not to.
  [[nodiscard]] Fact<bool> redirected() const;
  /// What is open about the route of requests alone, which is all that posted writes depend on.
  [[nodiscard]] std::vector<OpenQuestion> requests_open() const;
};

/// Devices whose upper port lies on the route from `device` up to the vertex `turn`: the device
/// itself first, then the switches that it hangs below. The last one's port is the one that
/// decides.
std::vector<DeviceId> ports_below(const Graph& graph, DeviceId device, VertexId turn);

}  // namespace gdr
