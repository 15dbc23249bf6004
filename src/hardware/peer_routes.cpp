#include "src/hardware/peer_routes.hpp"

#include <algorithm>

#include "src/common/check.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr {
namespace {

/// The direct route with a detour from the switch where it turns, up to the host bridge and back.
Route with_detour(const Graph& graph, const Route& direct, VertexId turn) {
  const Route up = graph.route_to_host_bridge(turn);
  const Route down = reversed(up);
  Route route;
  for (const Hop& hop : direct) {
    if (hop.from == turn) {
      route.insert(route.end(), up.begin(), up.end());
      route.insert(route.end(), down.begin(), down.end());
    }
    route.push_back(hop);
  }
  return route;
}

/// The ACS bits of the port above a vertex. They are unknown for a switch that follows only from
/// stated distances.
Fact<Acs> acs_above(const Hardware& hardware, VertexId below) {
  const Vertex& v = hardware.graph().vertex(below);
  if (hardware.graph().device_at(below) == nullptr) return {Acs{}, Basis::unknown};
  return hardware.port_acs({v.host, v.index});
}

}  // namespace

Fact<bool> PeerRoutes::redirected() const {
  const bool ats_open = requests_redirected.value && !requests_redirected.known();
  if (translated && !ats_open) return stated(true);
  for (const Fact<bool>& one : {requests_redirected, completions_redirected})
    if (one.value && one.known()) return one;
  const bool known = requests_redirected.known() && completions_redirected.known();
  return {requests_redirected.value || completions_redirected.value,
          known ? requests_redirected.basis : Basis::unknown};
}

std::vector<OpenQuestion> PeerRoutes::requests_open() const {
  std::vector<OpenQuestion> questions = open;
  if (!completions_redirected.known()) questions.pop_back();
  return questions;
}

std::vector<DeviceId> ports_below(const Graph& graph, DeviceId device, VertexId turn) {
  std::vector<DeviceId> ports;
  const Host& host = graph.topology().hosts.at(device.host);
  for (std::optional<std::size_t> at = device.device; at;
       at = device_index(host, host.devices[*at].under)) {
    const DeviceId id{device.host, *at};
    if (graph.device(id) == turn) break;
    ports.push_back(id);
  }
  return ports;
}

PeerRoutes Hardware::peer_routes(VertexId initiator, VertexId target) const {
  PeerRoutes routes;
  const auto direct = graph_->local_route(initiator, target);
  check(direct.has_value(), "a pair of two hosts has no route over PCIe");
  routes.direct = *direct;
  routes.request = *direct;
  routes.completion = reversed(*direct);
  const auto turn =
      std::find_if(direct->begin(), direct->end(), [](const Hop& hop) { return !hop.up; });
  const bool inside = std::all_of(direct->begin(), direct->end(),
                                  [](const Hop& hop) { return hop.kind == HopKind::pcie; });
  if (!inside || turn == direct->begin() || turn == direct->end() ||
      graph_->vertex(turn->from).kind != VertexKind::pci_switch)
    return routes;
  routes.parts_at_switch = true;
  routes.turn = turn->from;

  const Fact<Acs> to_target = acs_above(*this, (turn - 1)->from);
  routes.requests_redirected = {to_target.value.has(Acs::request_redirect | Acs::egress_control),
                                to_target.basis};
  const Fact<Acs> to_initiator = acs_above(*this, turn->to);
  routes.completions_redirected = {to_initiator.value.has(Acs::completion_redirect),
                                   to_initiator.basis};
  // Requests that the device has translated itself (ATS) take the direct route where the port
  // allows it (DT), even if the port redirects others.
  if (routes.requests_redirected.value && to_target.value.has(Acs::direct_translated)) {
    const std::optional<bool> ats = graph_->device_at(initiator)->ats;
    routes.direct_translated = ats.value_or(false);
    routes.requests_redirected = ats ? stated(!*ats) : Fact<bool>{true, Basis::unknown};
    if (!ats) routes.open.push_back({OpenQuestion::Kind::ats, initiator});
  }
  const Host& host = topology().hosts.at(graph_->vertex(initiator).host);
  routes.translated = host.software.iommu == IommuMode::translate && !routes.direct_translated;
  // Where the IOMMU's addresses send requests up, the bits of the port make no difference.
  if (!to_target.known() && !routes.translated)
    routes.open.push_back({OpenQuestion::Kind::acs, (turn - 1)->from});
  if (!to_initiator.known()) routes.open.push_back({OpenQuestion::Kind::acs, turn->to});
  if (routes.requests_redirected.value || routes.translated)
    routes.request = with_detour(*graph_, routes.request, routes.turn);
  if (routes.completions_redirected.value)
    routes.completion = with_detour(*graph_, routes.completion, routes.turn);
  return routes;
}

Fact<std::size_t> Hardware::numa(DeviceId id) const {
  const std::size_t node = graph_->numa_of(id);
  const bool known =
      device(id).place_known.value_or(true) && host_of(id).numa_nodes.at(node).known.value_or(true);
  return {node, known ? Basis::stated : Basis::unknown};
}

}  // namespace gdr
