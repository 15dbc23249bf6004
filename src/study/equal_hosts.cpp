#include "src/study/equal_hosts.hpp"

#include <algorithm>

#include "src/hardware/device_models.hpp"

namespace gdr::study {
namespace {

bool speaks_infiniband(const Device& device, const ModelLibrary& models) {
  if (device.kind != DeviceKind::nic) return false;
  if (device.link_layer) return *device.link_layer == LinkLayer::infiniband;
  return nic_model(models, device).link_layers.value.find("infiniband") != std::string::npos;
}

}  // namespace

Topology with_equal_host(const Topology& topology, const ModelLibrary& models) {
  Topology two = topology;
  two.hosts = {topology.hosts.front(), topology.hosts.front()};
  two.hosts[1].name = two.hosts[0].name == "h1" ? "h2" : "h1";
  if (two.fabric) return two;
  const std::vector<Device>& devices = topology.hosts.front().devices;
  const bool infiniband = std::any_of(devices.begin(), devices.end(), [&](const Device& device) {
    return speaks_infiniband(device, models);
  });
  const bool any = std::any_of(devices.begin(), devices.end(),
                               [](const Device& device) { return device.kind == DeviceKind::nic; });
  two.fabric = Fabric{infiniband || !any ? "infiniband" : "roce-v2", {}, {}};
  return two;
}

}  // namespace gdr::study
