#pragma once

#include <optional>
#include <string>

#include "src/hardware/graph.hpp"

namespace gdr {

/// The distance over PCIe, whatever NVLinks there are: a stated one (Host::distances), else by the
/// tree. `none` between hosts.
Distance pcie_distance(const Graph& graph, DeviceId a, DeviceId b);

/// NVLinks between two GPUs of a host: the links that join them directly, or what each has to a
/// common NVSwitch. 0: none.
int nvlink_count(const Graph& graph, DeviceId a, DeviceId b);

/// What nvidia-smi prints for a GPU pair: "NV12", else the PCIe distance.
std::string smi_distance(const Graph& graph, DeviceId a, DeviceId b);

/// A peer-to-peer access from an initiator to a target of the same host: where the request goes.
struct PeerRoute {
  Route hops;                      ///< with the detour to the root port, when ACS redirects
  std::optional<bool> redirected;  ///< nullopt: the ACS bits of the port that decides are not known
  std::size_t deciding_device = 0;  ///< device below the deciding port (in the initiator's host);
                                    ///< meaningful when the paths part at a switch
  bool parts_at_switch = false;
};

/// Requests of `initiator` to `target` (posted writes, read requests). They turn round at the
/// lowest common bridge; when that is a switch and its ingress port redirects requests (RR or EC),
/// they go up to the host bridge and come back. nullopt between hosts.
std::optional<PeerRoute> request_route(const Graph& graph, VertexId initiator, VertexId target);

/// Completions that `target` sends back to `initiator`: redirected by CR of the ingress port on the
/// target's side.
std::optional<PeerRoute> completion_route(const Graph& graph, VertexId initiator, VertexId target);

}  // namespace gdr
