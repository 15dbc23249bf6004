#include "src/hardware/peer_routes.hpp"

#include <algorithm>

#include "src/common/check.hpp"
#include "src/hardware/device_models.hpp"

namespace gdr {
namespace {

/// The direct way with the detour from the switch where it turns up to the host bridge and back.
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

std::optional<bool> any_of_bits(const std::optional<Acs>& acs, std::uint16_t bits) {
  return acs ? std::optional(acs->has(bits)) : std::nullopt;
}

}  // namespace

std::optional<bool> PeerWays::redirected() const {
  if (requests_redirected.value_or(false) || completions_redirected.value_or(false)) return true;
  if (!requests_redirected || !completions_redirected) return std::nullopt;
  return false;
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

std::optional<Acs> port_acs(const Graph& graph, const ModelLibrary& models, DeviceId id) {
  const Host& host = graph.topology().hosts.at(id.host);
  const Device& device = host.devices.at(id.device);
  if (device.acs) return device.acs;
  const auto parent = device_index(host, device.under);
  const bool below_switch = parent && host.devices[*parent].kind == DeviceKind::pci_switch;
  if (below_switch && !switch_model(models, host.devices[*parent]).acs.value) return Acs{};
  return std::nullopt;
}

PeerWays peer_ways(const Graph& graph, const ModelLibrary& models, DeviceId initiator,
                   DeviceId target) {
  PeerWays ways;
  const auto direct = graph.local_route(graph.device(initiator), graph.device(target));
  check(direct.has_value(), "a pair of two hosts has no way over PCIe");
  ways.request = *direct;
  ways.completion = reversed(*direct);
  ways.requests_redirected = false;
  ways.completions_redirected = false;
  const auto turn =
      std::find_if(direct->begin(), direct->end(), [](const Hop& hop) { return !hop.up; });
  const bool inside = std::all_of(direct->begin(), direct->end(),
                                  [](const Hop& hop) { return hop.kind == HopKind::pcie; });
  if (!inside || turn == direct->end() || graph.vertex(turn->from).kind != VertexKind::pci_switch)
    return ways;
  ways.parts_at_switch = true;
  ways.turn = turn->from;

  const auto request_port =
      port_acs(graph, models, ports_below(graph, initiator, ways.turn).back());
  ways.requests_redirected = any_of_bits(request_port, Acs::request_redirect | Acs::egress_control);
  ways.completions_redirected =
      any_of_bits(port_acs(graph, models, ports_below(graph, target, ways.turn).back()),
                  Acs::completion_redirect);
  const Topology& topology = graph.topology();
  if (ways.requests_redirected.value_or(false) && request_port->has(Acs::direct_translated)) {
    const std::optional<bool> ats = get(topology, initiator).ats;
    ways.direct_translated = ats.value_or(false);
    ways.requests_redirected = ats ? std::optional(!*ats) : std::nullopt;
  }
  const bool translating = topology.hosts.at(initiator.host).software.iommu == IommuMode::translate;
  ways.translated = translating && !ways.direct_translated;
  if (ways.requests_redirected.value_or(false) || ways.translated)
    ways.request = with_detour(graph, ways.request, ways.turn);
  if (ways.completions_redirected.value_or(false))
    ways.completion = with_detour(graph, ways.completion, ways.turn);
  return ways;
}

}  // namespace gdr
