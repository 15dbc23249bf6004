#include <algorithm>

#include "src/hardware/hardware.hpp"

// Latencies of Hardware.

namespace gdr {

Hardware::Translation Hardware::translation(const Route& data, Bytes size, Bytes window) const {
  Translation result;
  for (const Hop& hop : data) {
    const VertexId bridge = hop.up ? hop.from : hop.to;
    if (hop.kind != HopKind::root_complex) continue;
    const Host& host = graph_->topology().hosts.at(graph_->vertex(bridge).host);
    const CpuModel& model = cpu(bridge);
    if (host.software.iommu != IommuMode::translate || !model.iotlb_entries ||
        !model.iotlb_miss_latency)
      continue;
    const Bytes page = host.software.iommu_page_size.value_or(
        stated(software("linux"), &SoftwareModel::iommu_page, "iommu_page"));
    const double reach = page.as_double() * static_cast<double>(model.iotlb_entries->value);
    result.miss_share = std::max(0.0, 1 - reach / window.as_double());
    const Duration miss = model.iotlb_miss_latency->value;
    result.latency = miss * result.miss_share;
    if (result.miss_share > 0 && model.iotlb_walks)
      result.bound = Bandwidth{std::min(size, page).as_double() *
                               static_cast<double>(model.iotlb_walks->value) /
                               (miss.seconds * result.miss_share)};
    break;
  }
  return result;
}

bool Hardware::through_root_complex(const Route& route) const {
  bool bridge = false;
  bool memory = false;
  for (const Hop& hop : route) {
    bridge = bridge || graph_->vertex(hop.to).kind == VertexKind::host_bridge;
    memory = memory || hop.kind == HopKind::memory || hop.kind == HopKind::c2c;
  }
  return bridge && !memory;
}

Duration Hardware::crossing(const Route& route, std::size_t i) const {
  const VertexId at = i == 0 ? route.front().from : route[i - 1].to;
  const bool before = i > 0 && route[i - 1].kind == HopKind::pcie;
  const bool after = i < route.size() && route[i].kind == HopKind::pcie;
  Duration time;
  switch (graph_->vertex(at).kind) {
    case VertexKind::gpu:
      for (const std::size_t hop : {i, i + 1})
        if (hop >= 1 && hop <= route.size() && route[hop - 1].kind == HopKind::c2c)
          return nvlink(route[hop - 1]).latency.value;
      return gpu(at).pcie_latency.value;
    case VertexKind::nic:
      return nic(at).pcie_latency.value;
    case VertexKind::nvme:
      return nvme(at).pcie_latency.value;
    case VertexKind::pci_switch:
      return pci_switch(at).latency.value;
    case VertexKind::host_bridge:
      time = cpu(at).root_port_latency.value;
      // The route turns inside the host bridge, so it also leaves by a root port.
      if (before && after) time += cpu(at).root_port_latency.value + cpu(at).p2p_latency.value;
      return time;
    case VertexKind::socket:
      if (i > 0 && i < route.size() && route[i - 1].kind == HopKind::root_complex &&
          through_root_complex(route))
        time += cpu(at).p2p_latency.value;
      if (i < route.size() && route[i].kind == HopKind::socket_link && cpu(at).socket_link_latency)
        time += cpu(at).socket_link_latency->value;
      return time;
    default:
      return time;
  }
}

Duration Hardware::one_way(const Route& route) const {
  Duration sum;
  for (std::size_t i = 0; i <= route.size() && !route.empty(); ++i) sum += crossing(route, i);
  return sum;
}

Duration Hardware::read_latency(VertexId target) const {
  return graph_->vertex(target).kind == VertexKind::gpu ? gpu(target).bar_read_latency.value
                                                        : cpu(target).memory_latency.value;
}

Duration Hardware::write_latency(VertexId target) const {
  if (graph_->vertex(target).kind == VertexKind::gpu) return gpu(target).bar_write_latency.value;
  const auto percent =
      stated(software("usual"), &SoftwareModel::write_latency_percent, "write_latency_percent");
  return cpu(target).memory_latency.value * (static_cast<double>(percent) / 100);
}

Duration Hardware::round_trip(const Route& requests, const Route& data) const {
  return one_way(requests) + read_latency(data.front().from) + one_way(data);
}

Duration Hardware::wire_latency() const {
  const int switches = graph_->topology().fabric->switches.value_or(1);
  return fabric().cable_latency.value * (switches + 1) + fabric().switch_latency.value * switches;
}

Duration Hardware::nvlink_latency(const Route& route) const {
  const NvlinkModel& model = nvlink(route.front());
  Duration time = model.latency.value;
  for (const Hop& hop : route)
    if (graph_->vertex(hop.to).kind == VertexKind::nvswitch && model.switch_latency)
      time += model.switch_latency->value;
  return time;
}

}  // namespace gdr
