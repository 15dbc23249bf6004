#include "sim/flow/context.hpp"

#include <algorithm>

// What all movers have in common.

namespace gdr::sim {
namespace {

// Small pieces are joined until a staging buffer, or a transfer, has at most this many: finer
// pieces change the result by less than one part in this number.
constexpr std::uint64_t pieces_per_buffer = 32;
constexpr std::uint64_t pieces_per_transfer = 64;

std::uint64_t most_pieces(const FlowContext& flow, const Stage& stage) {
  if (stage.buffer) return pieces_per_buffer;
  const bool packets = stage.mover == Mover::nic_read || stage.mover == Mover::wire ||
                       stage.mover == Mover::nic_write;
  return packets ? flow.drive.granules : pieces_per_transfer;
}

bool is_memory(const Graph& graph, VertexId id) {
  return graph.vertex(id).kind == VertexKind::memory;
}

}  // namespace

Bytes piece_of(const FlowContext& flow, const Stage& stage) {
  Bytes piece = stage.piece;
  const std::uint64_t most = stage.joins ? most_pieces(flow, stage) : 0;
  if (most == 0) return piece;
  const Bytes whole = stage.buffer.value_or(flow.size());
  while (piece.count * most < whole.count) piece = piece * 2;
  return piece;
}

double units_per_byte(const FlowContext& flow, const StageSpec& spec) {
  return spec.units_per_byte +
         spec.units_per_packet / std::min(spec.packet, flow.size()).as_double();
}

void use(FlowContext& flow, StageSpec& spec, std::size_t resource, double units_per_byte) {
  spec.resources.push_back(resource);
  // Weighted by the bytes that the flow moves: a flow of one byte is all headers and must not make
  // room for another.
  const auto messages = static_cast<double>(std::max<std::uint64_t>(1, flow.drive.messages));
  flow.resources.use(resource, units_per_byte, flow.size().as_double() * messages);
}

void limit(const FlowContext& flow, StageSpec& spec, Bandwidth payload, const LimitId& id) {
  const double units = payload.bytes_per_second * units_per_byte(flow, spec);
  if (spec.limit > 0 && spec.limit <= units) return;
  spec.limit = units;
  spec.limited_by = id;
}

std::optional<ResourceId> resource_of(const Graph& graph, const Hop& hop) {
  const Direction direction = hop.up ? Direction::up : Direction::down;
  const auto is_gpu = [&](VertexId id) { return graph.vertex(id).kind == VertexKind::gpu; };
  switch (hop.kind) {
    case HopKind::pcie: {
      const Edge& edge = graph.edge(hop.edge);
      return ResourceId{ResourceKind::link, graph.device({edge.host, edge.index}), direction};
    }
    case HopKind::root_complex:
      return ResourceId{ResourceKind::root_complex, hop.up ? hop.from : hop.to, direction};
    case HopKind::memory:
      return ResourceId{ResourceKind::memory, is_memory(graph, hop.to) ? hop.to : hop.from};
    case HopKind::socket_link:
      return ResourceId{ResourceKind::socket_link, hop.from, Direction::both, hop.to};
    case HopKind::c2c:
      return ResourceId{ResourceKind::c2c, is_gpu(hop.from) ? hop.from : hop.to, direction};
    case HopKind::wire:
      return ResourceId{ResourceKind::port, hop.up ? hop.from : hop.to,
                        hop.up ? Direction::out : Direction::in};
    case HopKind::nvlink:
      if (is_gpu(hop.from) && is_gpu(hop.to))
        return ResourceId{ResourceKind::nvlink_pair, hop.from, Direction::both, hop.to};
      if (is_gpu(hop.from)) return ResourceId{ResourceKind::nvlink_end, hop.from, Direction::out};
      if (is_gpu(hop.to)) return ResourceId{ResourceKind::nvlink_end, hop.to, Direction::in};
      break;
  }
  return std::nullopt;
}

std::optional<Bandwidth> capacity_of(const Hardware& hardware, const Stage& stage, const Hop& hop) {
  const Graph& graph = hardware.graph();
  const auto device = [&](VertexId id) {
    return DeviceId{graph.vertex(id).host, graph.vertex(id).index};
  };
  switch (hop.kind) {
    case HopKind::pcie:
      return hardware.link_bandwidth(hop);
    case HopKind::root_complex:
      return hardware.cpu(hop.up ? hop.from : hop.to).root_complex_bandwidth.value;
    case HopKind::memory:
      return hardware.memory_bandwidth(is_memory(graph, hop.to) ? hop.to : hop.from);
    case HopKind::socket_link:
      return hardware.socket_link_bandwidth(hop);
    case HopKind::c2c:
      return hardware.c2c_bandwidth(hop);
    case HopKind::nvlink:
      return hardware.nvlink_bandwidth(device(stage.from), device(stage.to));
    case HopKind::wire: {
      const VertexId nic = hop.up ? hop.from : hop.to;
      return graph.device_at(nic)->port_rate.value_or(hardware.nic(nic).port_rate.value);
    }
  }
  return std::nullopt;
}

void work_on_hops(FlowContext& flow, StageSpec& spec, const Stage& stage) {
  const bool nvlink = std::any_of(stage.data.begin(), stage.data.end(),
                                  [](const Hop& hop) { return hop.kind == HopKind::nvlink; });
  if (nvlink) work_over_nvlink(flow, spec, stage);
  else work_by_dma(flow, spec, stage);
}

/// All links that join the two GPUs, shared by what leaves one and by what enters the other.
void work_over_nvlink(FlowContext& flow, StageSpec& spec, const Stage& stage) {
  for (const Hop& hop : stage.data)
    if (const auto id = resource_of(flow.graph(), hop))
      use(flow, spec, flow.resources.number(*id, *capacity_of(flow.hardware, stage, hop), false),
          1);
  // Every byte is read in one device memory and written in the other.
  for (const VertexId gpu : {stage.from, stage.to})
    use(flow, spec,
        flow.resources.number({ResourceKind::memory, gpu},
                              flow.hardware.gpu(gpu).memory_bandwidth.value, false),
        1);
  const Duration one_way = flow.hardware.nvlink_latency(stage.data);
  spec.latency += stage.reads ? one_way * 2 : one_way;
}

}  // namespace gdr::sim
