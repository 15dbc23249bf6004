#include <algorithm>

#include "src/verdict/pair_context.hpp"

// Upper bounds of a pair's bandwidth, from Hardware's facts and without a simulation.

namespace gdr {
namespace {

/// Bounds within this ratio count as equal.
constexpr double alike = 1.001;

void limit(AccessBound& bound, Bandwidth by) {
  if (by >= bound.rate) return;
  if (by * alike < bound.rate) bound.links.clear();
  bound.rate = by;
}
void limit(AccessBound& bound, const std::optional<Bandwidth>& by) {
  if (by) limit(bound, *by);
}
void limit_by_link(AccessBound& bound, Bandwidth by, const Hop& hop) {
  if (by > bound.rate * alike) return;
  limit(bound, by);
  bound.links.push_back(hop);
}

/// Bandwidth of the initiator's DMA engine; nullopt: not known.
std::optional<Bandwidth> engine_rate(const PairContext& pair) {
  if (pair.kind == PairKind::gpu_gpu)
    return pair.hardware->gpu(pair.initiator).copy_bandwidth.value;
  if (pair.kind == PairKind::nvme_gpu) return std::nullopt;
  const auto& dma = pair.hardware->nic(pair.initiator).dma_bandwidth;
  return dma ? std::optional(dma->value) : std::nullopt;
}

/// The bound by the links, crossbars, root complexes and socket links of a route.
/// `wire_bytes(hop)`: bytes on a PCIe link per byte of payload.
template <typename WireBytes>
AccessBound route_bound(const PairContext& pair, const Route& route, WireBytes wire_bytes) {
  const Hardware& hardware = *pair.hardware;
  AccessBound bound{Bandwidth{1e15}, {}};
  for (const Hop& hop : route) {
    if (pair.graph().vertex(hop.to).kind == VertexKind::pci_switch)
      if (const auto& crossbar = hardware.pci_switch(hop.to).crossbar_bandwidth)
        limit(bound, crossbar->value);
    if (hop.kind == HopKind::pcie) {
      if (const auto room = hardware.link_bandwidth(hop))
        limit_by_link(bound, *room * (1 / wire_bytes(hop)), hop);
    } else if (pair.cpu != nullptr && hop.kind == HopKind::root_complex) {
      limit(bound, hardware.cpu(hop.up ? hop.from : hop.to).root_complex_bandwidth.value);
    } else if (pair.cpu != nullptr && hop.kind == HopKind::socket_link) {
      limit(bound, hardware.socket_link_bandwidth(hop));
    } else if (hop.kind == HopKind::c2c) {
      limit(bound, hardware.c2c_bandwidth(hop));
    }
  }
  return bound;
}

/// A GPU that NVLink or C2C joins to its CPU is reached over the CPU's fabric.
bool over_c2c(const PairContext& pair) {
  return pair.graph().has_c2c(pair.graph().device(pair.target)) ||
         pair.graph().has_c2c(pair.graph().device(pair.initiator));
}

/// An engine's rate limits only routes over PCIe.
bool over_pcie(const Route& route) {
  return std::any_of(route.begin(), route.end(),
                     [](const Hop& hop) { return hop.kind == HopKind::pcie; });
}

AccessBound read_bound(const PairContext& pair) {
  const Hardware& hardware = *pair.hardware;
  const VertexId initiator = pair.graph().device(pair.initiator);
  const VertexId target = pair.graph().device(pair.target);
  const bool c2c = over_c2c(pair);
  const Route data = c2c ? *pair.graph().data_route(target, initiator) : pair.routes.completion;
  const Route requests = c2c ? reversed(data) : pair.routes.request;
  const PcieModel& layout = hardware.layout(data);
  const Bytes piece = hardware.completion_size(target, data);
  const Bytes request = hardware.max_read_request(initiator);
  // After a redirect the requests go up and down the uplink as well.
  AccessBound bound = route_bound(pair, data, [&](const Hop& hop) {
    const bool both = std::find(requests.begin(), requests.end(), hop) != requests.end();
    return completion_traffic(layout, piece, piece).wire_bytes_per_byte +
           (both ? request_traffic(layout, request, request).wire_bytes_per_byte : 0);
  });
  if (over_pcie(data)) limit(bound, engine_rate(pair));
  // Many reads are under way, so their size does not limit the bytes requested.
  limit(bound, read_window(hardware.outstanding_reads(initiator, request),
                           hardware.round_trip(requests, data)));
  if (c2c) return bound;
  limit(bound, hardware.gpu(pair.target).bar_read_bandwidth.value);
  limit(bound, forward_limit(pair).read);
  return bound;
}

AccessBound write_bound(const PairContext& pair) {
  const Hardware& hardware = *pair.hardware;
  const VertexId target = pair.graph().device(pair.target);
  const bool c2c = over_c2c(pair);
  const Route data = c2c ? *pair.graph().data_route(pair.graph().device(pair.initiator), target)
                         : pair.routes.request;
  const PcieModel& layout = hardware.layout(data);
  const Bytes piece = hardware.max_payload(data);
  AccessBound bound = route_bound(pair, data, [&](const Hop&) {
    return write_traffic(layout, piece, piece).wire_bytes_per_byte;
  });
  if (over_pcie(data)) limit(bound, engine_rate(pair));
  limit(bound, hardware.credit_bound(data));
  if (pair.cpu != nullptr)
    limit(bound, hardware.strict_order_bound(pair.graph().device(pair.initiator), data));
  if (c2c) return bound;
  limit(bound, hardware.gpu(pair.target).bar_write_bandwidth.value);
  limit(bound, forward_limit(pair).write);
  const bool sockets = std::any_of(data.begin(), data.end(),
                                   [](const Hop& hop) { return hop.kind == HopKind::socket_link; });
  if (sockets && pair.cpu != nullptr && pair.cpu->p2p_remote_write_window)
    limit(bound, credit_window(pair.cpu->p2p_remote_write_window->value,
                               hardware.one_way(data) * 2 + hardware.write_latency(target)));
  return bound;
}

/// The bandwidth of all NVLinks of the pair, equal in both directions.
PairBounds nvlink_bounds(const PairContext& pair) {
  const auto route = pair.graph().nvlink_route(pair.graph().device(pair.initiator),
                                               pair.graph().device(pair.target));
  if (!route || pair.hardware->find_nvlink(route->front()) == nullptr) return {};
  const AccessBound bound{pair.hardware->nvlink_bandwidth(pair.initiator, pair.target), {}};
  return {bound, bound};
}

}  // namespace

PairBounds pair_bounds(const PairContext& pair) {
  if (pair.over_nvlink()) return nvlink_bounds(pair);
  return {read_bound(pair), write_bound(pair)};
}

PairBandwidth bandwidth_bound(const PairContext& pair) {
  const PairBounds bounds = pair_bounds(pair);
  return {bounds.read ? std::optional(bounds.read->rate) : std::nullopt,
          bounds.write ? std::optional(bounds.write->rate) : std::nullopt};
}

PairBandwidth bandwidth_bound(const Hardware& hardware, DeviceId initiator, DeviceId target) {
  const DeviceKind kind = hardware.device(initiator).kind;
  if (kind == DeviceKind::nic)
    return bandwidth_bound(make_pair_context(hardware, PairKind::gpu_nic, target, initiator));
  return bandwidth_bound(
      make_pair_context(hardware, kind == DeviceKind::nvme ? PairKind::nvme_gpu : PairKind::gpu_gpu,
                        initiator, target));
}

}  // namespace gdr
