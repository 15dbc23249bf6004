#include "src/hardware/distance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/common/check.hpp"

namespace gdr {

bool of_one_card(const Device& a, const Device& b) {
  const auto dot = a.address.rfind('.');
  return dot != std::string::npos && a.under == b.under &&
         a.address.substr(0, dot) == b.address.substr(0, b.address.rfind('.'));
}

Distance pcie_distance(const Graph& graph, DeviceId a, DeviceId b) {
  if (a == b) return Distance::self;
  if (a.host != b.host) return Distance::none;
  if (const auto stated = graph.stated_distance(a, b)) return *stated;
  const Host& host = graph.topology().hosts.at(a.host);
  if (host.devices.at(a.device).place_known == false ||
      host.devices.at(b.device).place_known == false)
    return Distance::unknown;
  if (of_one_card(host.devices[a.device], host.devices[b.device])) return Distance::pix;
  const auto route = graph.local_route(graph.device(a), graph.device(b));
  check(route.has_value(), "two devices of a host that are not joined");
  int switches = 0;
  bool bridge = false;
  bool socket = false;
  bool known = true;
  for (const Hop& hop : *route) {
    const Vertex& v = graph.vertex(hop.to);
    if (v.kind == VertexKind::pci_switch) ++switches;
    if (v.kind == VertexKind::host_bridge) {
      bridge = true;
      known = known && v.known;
    }
    if (v.kind == VertexKind::socket) socket = true;
  }
  const auto numa_known = [&](DeviceId id) {
    return host.numa_nodes.at(graph.numa_of(id)).known.value_or(true);
  };
  if (graph.numa_of(a) != graph.numa_of(b))
    return numa_known(a) && numa_known(b) ? Distance::sys : Distance::node_or_sys;
  if (socket && !numa_known(a)) return known ? Distance::node_or_sys : Distance::unknown;
  if (socket) return known ? Distance::node : Distance::phb_or_node;
  if (bridge) return Distance::phb;
  return switches > 1 ? Distance::pxb : Distance::pix;
}

int nvlink_count(const Graph& graph, DeviceId a, DeviceId b) {
  if (a.host != b.host || a == b) return 0;
  const Host& host = graph.topology().hosts.at(a.host);
  const std::string& name_a = host.devices.at(a.device).name;
  const std::string& name_b = host.devices.at(b.device).name;
  int direct = 0;
  int to_switch_a = 0;
  int to_switch_b = 0;
  const auto is_switch = [&](const NvLink& link) {
    const auto device = device_index(host, link.to);
    return link.to.empty() || (device && host.devices[*device].kind == DeviceKind::nvswitch);
  };
  for (const NvLink& link : host.nvlinks) {
    if ((link.from == name_a && link.to == name_b) || (link.from == name_b && link.to == name_a))
      direct += link.count;
    if (link.from == name_a && is_switch(link)) to_switch_a += link.count;
    if (link.from == name_b && is_switch(link)) to_switch_b += link.count;
  }
  if (direct > 0) return direct;
  const int switched = std::min(to_switch_a, to_switch_b);
  // NVSwitches of two boards need links of their own.
  return switched > 0 && graph.nvlink_route(graph.device(a), graph.device(b)) ? switched : 0;
}

std::string smi_distance(const Graph& graph, DeviceId a, DeviceId b) {
  if (const int links = nvlink_count(graph, a, b); links > 0) return fmt::format("NV{}", links);
  return std::string(to_string(pcie_distance(graph, a, b)));
}

}  // namespace gdr
