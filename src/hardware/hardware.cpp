#include "src/hardware/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"

namespace gdr {
namespace {

const std::string& model_or_generic(const std::string& model) {
  static const std::string generic = "generic";
  return model.empty() ? generic : model;
}

}  // namespace

const CpuModel& Hardware::cpu(VertexId id) const {
  const Vertex& v = graph_->vertex(id);
  const Host& host = graph_->topology().hosts.at(v.host);
  std::size_t socket = v.index;
  if (v.kind == VertexKind::memory) socket = graph_->socket_of_numa(v.host, v.index);
  if (v.kind == VertexKind::host_bridge)
    socket = graph_->socket_of_numa(v.host, graph_->numa_of({v.host, v.index}));
  return models_->cpu(model_or_generic(host.sockets.at(socket).model));
}

const GpuModel& Hardware::gpu(VertexId id) const {
  return models_->gpu(model_or_generic(graph_->device_at(id)->model));
}
const NvmeModel& Hardware::nvme(VertexId id) const {
  const std::string& model = graph_->device_at(id)->model;
  return models_->nvme(model.empty() ? "gen4" : model);
}
const NicModel& Hardware::nic(VertexId id) const {
  return models_->nic(model_or_generic(graph_->device_at(id)->model));
}
const SwitchModel& Hardware::pci_switch(VertexId id) const {
  const Device* known =
      graph_->device_at(id);  // nullptr: a switch that only stated distances tell of
  return models_->pci_switch(known != nullptr ? model_or_generic(known->model) : "generic");
}

const FabricModel& Hardware::fabric() const {
  check(graph_->topology().fabric.has_value(), "a wire without a fabric");
  return models_->fabric(graph_->topology().fabric->model);
}

std::optional<PcieLink> Hardware::link(std::size_t edge) const {
  const Edge& e = graph_->edge(edge);
  const Device& device = graph_->topology().hosts.at(e.host).devices.at(e.index);
  if (device.link) return device.link;
  const VertexId id = graph_->device({e.host, e.index});
  switch (device.kind) {
    case DeviceKind::gpu:
      return gpu(id).header.pcie;
    case DeviceKind::nic:
      return nic(id).header.pcie;
    case DeviceKind::nvme:
      return nvme(id).header.pcie;
    case DeviceKind::pci_switch:
      return pci_switch(id).is_virtual.value ? std::nullopt : pci_switch(id).header.pcie;
    default:
      return std::nullopt;
  }
}

std::optional<Bandwidth> Hardware::link_bandwidth(const Hop& hop) const {
  const auto link = this->link(hop.edge);
  if (!link) return std::nullopt;
  Bandwidth bandwidth = tlp_bandwidth(models_->pcie(link->generation), link->width);
  for (const VertexId end : {hop.from, hop.to})
    if (graph_->vertex(end).kind == VertexKind::pci_switch)
      if (const auto& percent = pci_switch(end).port_bandwidth_percent)
        bandwidth =
            std::min(bandwidth, tlp_bandwidth(models_->pcie(link->generation), link->width) *
                                    (static_cast<double>(percent->value) / 100));
  return bandwidth;
}

const PcieModel& Hardware::layout(const Route& route) const {
  for (const Hop& hop : route)
    if (hop.kind == HopKind::pcie)
      if (const auto link = this->link(hop.edge)) return models_->pcie(link->generation);
  return models_->pcie(4);
}

Bytes Hardware::max_payload(const Route& route) const {
  Bytes least{4096};
  const auto look = [&](VertexId id) {
    const Device* device = graph_->device_at(id);
    Bytes here = least;
    switch (graph_->vertex(id).kind) {
      case VertexKind::gpu:
        here = gpu(id).max_payload.value;
        break;
      case VertexKind::nic:
        here = nic(id).max_payload.value;
        break;
      case VertexKind::nvme:
        here = nvme(id).max_payload.value;
        break;
      case VertexKind::pci_switch:
        here = pci_switch(id).max_payload.value;
        break;
      case VertexKind::host_bridge:
        here = cpu(id).max_payload.value;
        break;
      default:
        return;
    }
    if (device != nullptr && device->max_payload) here = *device->max_payload;
    least = std::min(least, here);
  };
  for (const Hop& hop : route) {
    look(hop.from);
    look(hop.to);
  }
  return least;
}

namespace {

/// The two numbers of a reading engine.
struct ReadEngine {
  Bytes request;
  Bytes outstanding;
  std::optional<std::int64_t> requests;
};

}  // namespace

static ReadEngine read_engine(const Hardware& hardware, VertexId engine) {
  switch (hardware.graph().vertex(engine).kind) {
    case VertexKind::gpu:
      return {hardware.gpu(engine).max_read_request.value,
              hardware.gpu(engine).outstanding_reads.value, std::nullopt};
    case VertexKind::nvme:
      return {hardware.nvme(engine).max_read_request.value,
              hardware.nvme(engine).outstanding_reads.value, std::nullopt};
    default:
      break;
  }
  const NicModel& nic = hardware.nic(engine);
  ReadEngine result{nic.max_read_request.value, nic.outstanding_reads.value, std::nullopt};
  if (nic.reads_in_flight) result.requests = nic.reads_in_flight->value;
  return result;
}

Bytes Hardware::max_read_request(VertexId engine) const {
  const Device* device = graph_->device_at(engine);
  return device->max_read_request ? *device->max_read_request : read_engine(*this, engine).request;
}

Bytes Hardware::outstanding_reads(VertexId engine, Bytes size) const {
  const ReadEngine usual = read_engine(*this, engine);
  const Bytes set = max_read_request(engine);
  Bytes all = usual.outstanding;
  // The tags stay as many; each asks for less.
  if (set < usual.request) all = std::max(set, Bytes{all.count / usual.request.count * set.count});
  if (usual.requests)
    all = std::min(all, std::min(set, size) * static_cast<std::uint64_t>(*usual.requests));
  return all;
}

Bytes Hardware::completion_size(VertexId target, const Route& data) const {
  Bytes size = graph_->vertex(target).kind == VertexKind::gpu ? gpu(target).completion_size.value
                                                              : cpu(target).completion_size.value;
  if (through_root_complex(data))
    for (const Hop& hop : data)
      if (graph_->vertex(hop.from).kind == VertexKind::host_bridge)
        if (const auto& split = cpu(hop.from).read_completion_split)
          size = std::min(size, split->value);
  return std::min(size, max_payload(data));
}

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
        stated(models_->software("linux"), &SoftwareModel::iommu_page, "iommu_page"));
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
      // Turned round inside the host bridge: out by a root port as well.
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
  const auto percent = stated(models_->software("usual"), &SoftwareModel::write_latency_percent,
                              "write_latency_percent");
  return cpu(target).memory_latency.value * (static_cast<double>(percent) / 100);
}

Bytes Hardware::dma_cache() const {
  return stated(models_->software("usual"), &SoftwareModel::dma_cache, "dma_cache");
}

Bytes Hardware::nic_buffer(VertexId id) const {
  const auto windows =
      stated(models_->software("usual"), &SoftwareModel::nic_buffer_windows, "nic_buffer_windows");
  return nic(id).outstanding_reads.value * static_cast<std::uint64_t>(windows);
}

Duration Hardware::round_trip(const Route& requests, const Route& data) const {
  return one_way(requests) + read_latency(data.front().from) + one_way(data);
}

Duration Hardware::wire_latency() const {
  const int switches = graph_->topology().fabric->switches.value_or(1);
  return fabric().cable_latency.value * (switches + 1) + fabric().switch_latency.value * switches;
}

Bandwidth Hardware::memory_bandwidth(VertexId memory) const {
  const CpuModel& model = cpu(memory);
  const std::string& grade = model.memory_transfer_rate.value;
  const auto dash = grade.find('-');
  int megatransfers = 0;
  if (dash != std::string::npos)
    std::from_chars(grade.data() + dash + 1, grade.data() + grade.size(), megatransfers);
  if (megatransfers <= 0)
    throw InputError(fmt::format(
        "models/cpu/{}.json: memory_transfer_rate \"{}\" has no number; write it as in DDR4-3200",
        model.header.name, grade));
  const double channel_bytes = grade.starts_with("LPDDR") ? 2 : 8;
  const Vertex& v = graph_->vertex(memory);
  const Host& host = graph_->topology().hosts.at(v.host);
  const std::string& socket = host.numa_nodes.at(v.index).socket;
  const auto nodes = std::count_if(host.numa_nodes.begin(), host.numa_nodes.end(),
                                   [&](const NumaNode& n) { return n.socket == socket; });
  const double peak =
      static_cast<double>(model.memory_channels.value) * megatransfers * 1e6 * channel_bytes;
  return {peak * static_cast<double>(model.memory_efficiency_percent.value) / 100 /
          static_cast<double>(nodes)};
}

const NvlinkModel& Hardware::nvlink(const Hop& hop) const {
  const Edge& edge = graph_->edge(hop.edge);
  const NvLink& link = graph_->topology().hosts.at(edge.host).nvlinks.at(edge.index);
  if (!link.model.empty()) return models_->nvlink(link.model);
  for (const VertexId end : {hop.from, hop.to})
    if (graph_->vertex(end).kind == VertexKind::gpu)
      if (const auto& generation = gpu(end).nvlink_generation)
        return models_->nvlink(fmt::format("nvlink{}", generation->value));
  throw InputError(
      fmt::format("{} to {}: the NVLink's generation is not known; give \"model\" in \"nvlinks\"",
                  graph_->label(hop.from), graph_->label(hop.to)));
}

std::optional<Bandwidth> Hardware::socket_link_bandwidth(const Hop& hop) const {
  const CpuModel& model = cpu(hop.from);
  if (!model.socket_link_bandwidth) return std::nullopt;
  return model.socket_link_bandwidth->value *
         static_cast<double>(std::max<std::int64_t>(1, model.socket_links.value));
}

Bandwidth Hardware::c2c_bandwidth(const Hop& hop) const {
  const NvlinkModel& model = nvlink(hop);
  const Edge& edge = graph_->edge(hop.edge);
  const int count = graph_->topology().hosts.at(edge.host).nvlinks.at(edge.index).count;
  return model.link_bandwidth.value *
         (static_cast<double>(model.protocol_efficiency_percent.value) / 100 * count);
}

Bandwidth Hardware::nvlink_bandwidth(DeviceId from, DeviceId to) const {
  const Route route = *graph_->nvlink_route(graph_->device(from), graph_->device(to));
  const NvlinkModel& model = nvlink(route.front());
  return model.link_bandwidth.value *
         (static_cast<double>(model.protocol_efficiency_percent.value) / 100 *
          nvlink_count(*graph_, from, to));
}

Duration Hardware::nvlink_latency(const Route& route) const {
  const NvlinkModel& model = nvlink(route.front());
  Duration time = model.latency.value;
  for (const Hop& hop : route)
    if (graph_->vertex(hop.to).kind == VertexKind::nvswitch && model.switch_latency)
      time += model.switch_latency->value;
  return time;
}

std::optional<Bandwidth> Hardware::credit_bound(const Route& route) const {
  std::optional<Bandwidth> least;
  // A port's share of a crossing: a switch is two ports.
  const auto port = [&](VertexId id) -> Duration {
    switch (graph_->vertex(id).kind) {
      case VertexKind::gpu:
        return gpu(id).pcie_latency.value;
      case VertexKind::nic:
        return nic(id).pcie_latency.value;
      case VertexKind::pci_switch:
        return pci_switch(id).latency.value * 0.5;
      case VertexKind::host_bridge:
        return cpu(id).root_port_latency.value;
      default:
        return {};
    }
  };
  for (const Hop& hop : route) {
    if (hop.kind != HopKind::pcie) continue;
    std::optional<Bytes> credit;
    switch (graph_->vertex(hop.to).kind) {
      case VertexKind::gpu:
        credit = gpu(hop.to).posted_credit.value;
        break;
      case VertexKind::pci_switch:
        credit = pci_switch(hop.to).posted_credit.value;
        break;
      default:
        break;
    }
    if (!credit) continue;
    const Bandwidth bound = credit_window(*credit, (port(hop.from) + port(hop.to)) * 2);
    if (!least || bound < *least) least = bound;
  }
  return least;
}

}  // namespace gdr
