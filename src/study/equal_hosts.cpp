#include "src/study/equal_hosts.hpp"

#include <algorithm>

#include "src/hardware/hardware.hpp"

namespace gdr::study {
namespace {

bool speaks_infiniband(const Hardware& hardware, DeviceId nic) {
  const Device& device = hardware.device(nic);
  if (device.link_layer) return *device.link_layer == LinkLayer::infiniband;
  return hardware.nic(nic).link_layers.value.find("infiniband") != std::string::npos;
}

}  // namespace

Topology with_equal_host(const Topology& topology, const ModelLibrary& models) {
  Topology two = topology;
  two.hosts = {topology.hosts.front(), topology.hosts.front()};
  two.hosts[1].name = two.hosts[0].name == "h1" ? "h2" : "h1";
  if (two.fabric) return two;
  const Graph graph(two);
  const Hardware hardware(graph, models);
  const std::vector<DeviceId> nics = devices_of_kind(two, DeviceKind::nic);
  const bool infiniband = std::any_of(
      nics.begin(), nics.end(), [&](DeviceId nic) { return speaks_infiniband(hardware, nic); });
  two.fabric = Fabric{infiniband || nics.empty() ? "infiniband" : "roce-v2", {}, {}};
  return two;
}

}  // namespace gdr::study
