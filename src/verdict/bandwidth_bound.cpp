#include <fmt/format.h>

#include <algorithm>

#include "src/hardware/pcie.hpp"
#include "src/verdict/pair_context.hpp"

namespace gdr {
namespace {

void limit(Bandwidth& bound, Bandwidth by) { bound = std::min(bound, by); }
void limit(Bandwidth& bound, const std::optional<Bandwidth>& by) {
  if (by) limit(bound, *by);
}

/// What the device that starts the transfers brings with it.
struct Engine {
  Bytes outstanding_reads;
  Bytes max_read_request;
  Duration pcie_latency;
  std::optional<Bandwidth> dma_bandwidth;
};

Engine engine_of(const PairContext& pair) {
  const Device& device = pair.initiator_device();
  const auto request = [&](Bytes usual) { return device.max_read_request.value_or(usual); };
  if (pair.kind == PairKind::gpu_gpu) {
    const GpuModel& gpu = gpu_model(*pair.models, device);
    return {gpu.outstanding_reads.value, request(gpu.max_read_request.value),
            gpu.pcie_latency.value, gpu.copy_bandwidth.value};
  }
  if (pair.kind == PairKind::nvme_gpu) {
    const NvmeModel& drive = nvme_model(*pair.models, device);
    return {drive.outstanding_reads.value, request(drive.max_read_request.value),
            drive.pcie_latency.value, std::nullopt};
  }
  const NicModel& nic = nic_model(*pair.models, device);
  Bytes outstanding = nic.outstanding_reads.value;
  // Smaller requests of as many tags keep fewer bytes on their way.
  if (device.max_read_request && *device.max_read_request < nic.max_read_request.value)
    outstanding.count =
        outstanding.count * device.max_read_request->count / nic.max_read_request.value.count;
  return {outstanding, request(nic.max_read_request.value), nic.pcie_latency.value,
          nic.dma_bandwidth ? std::optional(nic.dma_bandwidth->value) : std::nullopt};
}

/// One way over switches, root complex and sockets, without the two ends.
Duration way_latency(const PairContext& pair, const Route& route) {
  Duration latency;
  bool root_complex = false;
  for (const Hop& hop : route) {
    const Vertex& passed = pair.graph->vertex(hop.to);
    if (passed.kind == VertexKind::pci_switch && passed.known)
      latency += switch_model(*pair.models, *pair.graph->device_at(hop.to)).latency.value;
    root_complex = root_complex || passed.kind == VertexKind::host_bridge;
    if (hop.kind == HopKind::socket_link && pair.cpu != nullptr && pair.cpu->socket_link_latency)
      latency += pair.cpu->socket_link_latency->value;
  }
  if (root_complex && pair.cpu != nullptr)
    latency += pair.cpu->root_port_latency.value * 2 + pair.cpu->p2p_latency.value;
  return latency;
}

/// The links and crossbars of a route. `wire_bytes(generation, hop)`: what a link carries of it for
/// each byte of payload.
template <typename WireBytes>
Bandwidth links_bound(const PairContext& pair, const Route& route, WireBytes wire_bytes) {
  Bandwidth bound{1e15};
  for (const Hop& hop : route) {
    const Device* into = pair.graph->device_at(hop.to);
    if (into != nullptr && into->kind == DeviceKind::pci_switch) {
      const auto& crossbar = switch_model(*pair.models, *into).crossbar_bandwidth;
      if (crossbar) limit(bound, crossbar->value);
    }
    if (hop.kind != HopKind::pcie) continue;
    const DeviceId below{pair.from.host, pair.graph->vertex(hop.up ? hop.from : hop.to).index};
    const LinkFact fact = link_of(*pair.graph, *pair.models, below);
    if (!fact.link) continue;
    const PcieModel& generation = pair.models->pcie(fact.link->generation);
    const double per_byte = wire_bytes(generation, hop);
    double share = 1 / per_byte;
    for (const VertexId end : {hop.from, hop.to}) {
      const Device* device = pair.graph->device_at(end);
      if (device == nullptr || device->kind != DeviceKind::pci_switch) continue;
      const auto& percent = switch_model(*pair.models, *device).port_bandwidth_percent;
      if (percent) share = std::min(share, static_cast<double>(percent->value) / 100 / per_byte);
    }
    limit(bound, tlp_bandwidth(generation, fact.link->width) * share);
  }
  return bound;
}

/// A GPU that NVLink or C2C joins to its CPU is reached over the CPU's fabric: the initiator's
/// links, its root complex and those links count.
std::optional<Bandwidth> c2c_bound(const PairContext& pair, const Engine& engine, bool reads) {
  const VertexId gpu = pair.graph->device(pair.target);
  if (!pair.graph->has_c2c(gpu) || pair.kind == PairKind::gpu_gpu) return std::nullopt;
  const auto route = pair.graph->data_route(pair.graph->device(pair.initiator), gpu);
  if (!route) return std::nullopt;
  const GpuModel& model = gpu_model(*pair.models, pair.gpu());
  const Bytes piece =
      reads ? std::min(model.completion_size.value, pair.max_payload) : pair.max_payload;
  Bandwidth bound = links_bound(pair, *route, [&](const PcieModel& generation, const Hop&) {
    return reads ? completion_traffic(generation, piece, piece).wire_bytes_per_byte
                 : write_traffic(generation, piece, piece).wire_bytes_per_byte;
  });
  if (pair.cpu != nullptr) limit(bound, pair.cpu->root_complex_bandwidth.value);
  limit(bound, engine.dma_bandwidth);
  for (const NvLink& link : pair.host().nvlinks) {
    if (link.from != pair.gpu().name || !numa_index(pair.host(), link.to)) continue;
    const std::string name = link.model.empty() && model.nvlink_generation
                                 ? fmt::format("nvlink{}", model.nvlink_generation->value)
                                 : link.model;
    if (name.empty()) continue;
    const NvlinkModel& nvlink = pair.models->nvlink(name);
    limit(bound,
          nvlink.link_bandwidth.value *
              (link.count * static_cast<double>(nvlink.protocol_efficiency_percent.value) / 100));
  }
  return bound;
}

Bandwidth read_bound(const PairContext& pair, const Engine& engine) {
  if (const auto over_cpu = c2c_bound(pair, engine, true)) return *over_cpu;
  const GpuModel& gpu = gpu_model(*pair.models, pair.gpu());
  Bytes piece = std::min(gpu.completion_size.value, pair.max_payload);
  if (pair.through_root_complex() && pair.cpu != nullptr && pair.cpu->read_completion_split)
    piece = std::min(piece, pair.cpu->read_completion_split->value);
  // After a redirect the requests go up and down the uplink as well.
  const auto wire_bytes = [&](const PcieModel& generation, const Hop& hop) {
    const Route& requests = pair.ways.request;
    const bool both = std::find(requests.begin(), requests.end(), hop) != requests.end();
    const Bytes request = engine.max_read_request;
    return completion_traffic(generation, piece, piece).wire_bytes_per_byte +
           (both ? request_traffic(generation, request, request).wire_bytes_per_byte : 0);
  };
  Bandwidth bound = links_bound(pair, pair.ways.completion, wire_bytes);
  limit(bound, gpu.bar_read_bandwidth.value);
  limit(bound, engine.dma_bandwidth);
  limit(bound, forward_limit(pair).read);
  const Duration ends =
      (engine.pcie_latency + gpu.pcie_latency.value) * 2 + gpu.bar_read_latency.value;
  limit(bound, read_window(engine.outstanding_reads, ends + way_latency(pair, pair.ways.request) +
                                                         way_latency(pair, pair.ways.completion)));
  return bound;
}

Bandwidth write_bound(const PairContext& pair, const Engine& engine) {
  if (const auto over_cpu = c2c_bound(pair, engine, false)) return *over_cpu;
  const GpuModel& gpu = gpu_model(*pair.models, pair.gpu());
  Bandwidth bound =
      links_bound(pair, pair.ways.request, [&](const PcieModel& generation, const Hop&) {
        return write_traffic(generation, pair.max_payload, pair.max_payload).wire_bytes_per_byte;
      });
  limit(bound, gpu.bar_write_bandwidth.value);
  limit(bound, engine.dma_bandwidth);
  limit(bound, forward_limit(pair).write);
  const bool strict =
      pair.kind == PairKind::gpu_nic && pair.initiator_device().relaxed_ordering == false;
  if (strict && pair.cpu != nullptr && pair.through_root_complex() &&
      pair.cpu->relaxed_ordering_needed.value && pair.cpu->strict_order_write_bandwidth)
    limit(bound, pair.cpu->strict_order_write_bandwidth->value);
  for (const Hop& hop : pair.ways.request) {
    const Device* into = pair.graph->device_at(hop.to);
    if (into == nullptr || into->kind != DeviceKind::pci_switch) continue;
    const SwitchModel& model = switch_model(*pair.models, *into);
    limit(bound, credit_window(model.posted_credit.value, model.latency.value));
  }
  limit(bound, credit_window(gpu.posted_credit.value,
                             gpu.pcie_latency.value + gpu.bar_write_latency.value));
  return bound;
}

/// All NVLinks of the pair together, both ways alike.
PairBandwidth nvlink_bound(const PairContext& pair) {
  const Host& host = pair.host();
  std::string name;
  for (const NvLink& link : host.nvlinks)
    if (link.from == pair.initiator_device().name && !link.model.empty() &&
        !numa_index(host, link.to))
      name = link.model;
  const auto& generation = gpu_model(*pair.models, pair.gpu()).nvlink_generation;
  if (name.empty() && generation) name = fmt::format("nvlink{}", generation->value);
  if (name.empty()) return {};
  const NvlinkModel& model = pair.models->nvlink(name);
  const Bandwidth bound =
      model.link_bandwidth.value *
      (pair.nvlinks * static_cast<double>(model.protocol_efficiency_percent.value) / 100);
  return {bound, bound};
}

}  // namespace

PairBandwidth bandwidth_bound(const Graph& graph, const ModelLibrary& models, DeviceId initiator,
                              DeviceId target) {
  const DeviceKind kind = get(graph.topology(), initiator).kind;
  PairContext pair;
  if (kind == DeviceKind::nic)
    pair = make_pair_context(graph, models, PairKind::gpu_nic, target, initiator);
  else
    pair = make_pair_context(graph, models,
                             kind == DeviceKind::nvme ? PairKind::nvme_gpu : PairKind::gpu_gpu,
                             initiator, target);
  if (pair.over_nvlink()) return nvlink_bound(pair);
  const Engine engine = engine_of(pair);
  return {read_bound(pair, engine), write_bound(pair, engine)};
}

}  // namespace gdr
