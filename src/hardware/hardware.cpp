#include "src/hardware/hardware.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/common/error.hpp"

// Sizes, windows and rates.

namespace gdr {

Fact<Bytes> Hardware::max_payload(DeviceId id) const {
  const Device& device = this->device(id);
  if (device.max_payload) return stated(*device.max_payload);
  const Basis basis = names_model(device.model) ? Basis::model : Basis::assumed;
  switch (device.kind) {
    case DeviceKind::gpu:
      return {gpu(id).max_payload.value, basis};
    case DeviceKind::nic:
      return {nic(id).max_payload.value, basis};
    case DeviceKind::nvme:
      return {nvme(id).max_payload.value, basis};
    case DeviceKind::pci_switch:
      return {pci_switch(id).max_payload.value, basis};
    case DeviceKind::host_bridge: {
      const auto cpu = cpu_above(id);
      return {cpu.value->max_payload.value, cpu.known() ? Basis::model : Basis::assumed};
    }
    case DeviceKind::nvswitch:
    case DeviceKind::other:
      break;
  }
  constexpr Bytes usual{256};
  return {usual, Basis::assumed};
}

/// The device at the root port above a device: a switch or the device itself.
DeviceId Hardware::top_of(DeviceId id) const {
  while (const auto above = switch_above(id)) id = *above;
  return id;
}

Fact<Bytes> Hardware::payload_setting(DeviceId id) const {
  if (device(id).max_payload) return max_payload(id);
  const Host& host = host_of(id);
  std::optional<Bytes> told;
  Fact<Bytes> taken = max_payload(id);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const DeviceId other{id.host, i};
    if (top_of(other) != top_of(id)) continue;
    const Fact<Bytes> most = max_payload(other);
    if (most.basis == Basis::stated) told = std::min(most.value, told.value_or(most.value));
    else if (most.basis == Basis::model) taken = {std::min(taken.value, most.value), Basis::model};
  }
  if (told) return stated(*told);
  return taken;
}

Bytes Hardware::max_payload(const Route& route) const {
  Bytes least{4096};
  const auto look = [&](VertexId id) {
    const Vertex& v = graph_->vertex(id);
    if (const Device* device = graph_->device_at(id)) {
      if (device->kind != DeviceKind::nvswitch && device->kind != DeviceKind::other)
        least = std::min(least, max_payload(DeviceId{v.host, v.index}).value);
    } else if (v.kind == VertexKind::pci_switch) {
      least = std::min(least, pci_switch(id).max_payload.value);
    } else if (v.kind == VertexKind::host_bridge) {
      least = std::min(least, cpu(id).max_payload.value);
    }
  };
  for (const Hop& hop : route) {
    look(hop.from);
    look(hop.to);
  }
  return least;
}

namespace {

/// The read limits of an engine, from its model.
struct ReadEngine {
  Bytes request;
  Bytes outstanding;
  std::optional<std::int64_t> requests;
};

ReadEngine read_engine(const Hardware& hardware, VertexId engine) {
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

}  // namespace

Fact<Bytes> Hardware::max_read_request(VertexId engine) const {
  const Device& device = *graph_->device_at(engine);
  if (device.max_read_request) return stated(*device.max_read_request);
  return {read_engine(*this, engine).request,
          names_model(device.model) ? Basis::model : Basis::assumed};
}

Bytes Hardware::outstanding_reads(VertexId engine, Bytes size) const {
  const ReadEngine usual = read_engine(*this, engine);
  const Bytes set = max_read_request(engine);
  Bytes all = usual.outstanding;
  // The number of tags stays; each asks for less.
  if (set < usual.request) all = std::max(set, Bytes{all.count / usual.request.count * set.count});
  if (usual.requests)
    all = std::min(all, std::min(set, size) * static_cast<std::uint64_t>(*usual.requests));
  return all;
}

Fact<Bytes> Hardware::bar_size(DeviceId id) const {
  if (device(id).bar_size) return stated(*device(id).bar_size);
  return {gpu(id).bar_size.value, names_model(device(id).model) ? Basis::model : Basis::assumed};
}

Bytes Hardware::bar_window(DeviceId id) const {
  const Bytes bar = bar_size(id);
  if (is_amd_gpu(id)) return bar;
  return {bar.count - std::min(bar.count, driver_bar_share.count)};
}

Fact<Bandwidth> Hardware::port_rate(DeviceId id) const {
  if (device(id).port_rate) return stated(*device(id).port_rate);
  return {nic(id).port_rate.value, names_model(device(id).model) ? Basis::model : Basis::assumed};
}

Bandwidth Hardware::network_rate(DeviceId id) const {
  return port_rate(id).value * device(id).ports.value_or(1);
}

bool Hardware::runs_ethernet(DeviceId id) const {
  if (device(id).link_layer) return *device(id).link_layer == LinkLayer::ethernet;
  const std::string& layers = nic(id).link_layers.value;
  if (layers == "ethernet") return true;
  return topology().fabric && fabric().link_layer.value == "ethernet" && layers != "infiniband";
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

Bytes Hardware::dma_cache() const {
  return stated(software("usual"), &SoftwareModel::dma_cache, "dma_cache");
}

Bytes Hardware::nic_buffer(VertexId id) const {
  const auto windows =
      stated(software("usual"), &SoftwareModel::nic_buffer_windows, "nic_buffer_windows");
  return nic(id).outstanding_reads.value * static_cast<std::uint64_t>(windows);
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

std::optional<Bandwidth> Hardware::strict_order_bound(VertexId engine, const Route& data) const {
  const Device* nic = graph_->device_at(engine);
  if (nic == nullptr || nic->kind != DeviceKind::nic || nic->relaxed_ordering.value_or(true))
    return std::nullopt;
  for (const Hop& hop : data) {
    if (graph_->vertex(hop.to).kind != VertexKind::host_bridge) continue;
    const CpuModel& model = cpu(hop.to);
    if (!model.relaxed_ordering_needed.value || !model.strict_order_write_bandwidth)
      return std::nullopt;
    return model.strict_order_write_bandwidth->value;
  }
  return std::nullopt;
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

std::optional<Bandwidth> Hardware::credit_bound(const Route& route) const {
  std::optional<Bandwidth> least;
  // A port's share of a crossing: half of a switch's latency.
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
