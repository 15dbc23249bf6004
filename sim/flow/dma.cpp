#include <algorithm>

#include "sim/flow/context.hpp"

// How a DMA uses PCIe: the resources along the data's route, headers, windows and credits.

namespace gdr::sim {
namespace {

/// The links, bridges, memory and sockets of the data's route, in its direction.
void use_route(FlowContext& flow, StageSpec& spec, const Stage& stage, double units_per_byte) {
  for (const Hop& hop : stage.data) {
    if (hop.kind == HopKind::pcie) flow.costs.pcie_bytes += units_per_byte;
    const auto id = resource_of(flow.graph(), hop);
    const auto capacity = capacity_of(flow.hardware, stage, hop);
    if (id && capacity)
      use(flow, spec, flow.resources.number(*id, *capacity, hop.kind != HopKind::pcie),
          units_per_byte);
  }
}

/// Where a route passes a root complex.
struct Crossing {
  VertexId bridge = 0;              ///< the last host bridge
  std::optional<std::size_t> in;    ///< the edge below the host bridge by which it enters
  std::optional<std::size_t> out;   ///< and the one by which it leaves
  std::optional<VertexId> in_port;  ///< the host bridge above `in`
  bool remote = false;              ///< over another socket
};

Crossing crossing_of(const Graph& graph, const Route& route) {
  const auto is_bridge = [&](VertexId id) {
    return graph.vertex(id).kind == VertexKind::host_bridge;
  };
  Crossing crossing;
  for (const Hop& hop : route) {
    crossing.remote = crossing.remote || hop.kind == HopKind::socket_link;
    if (is_bridge(hop.to)) crossing.bridge = hop.to;
    if (hop.kind != HopKind::pcie) continue;
    if (is_bridge(hop.to)) {
      crossing.in = hop.edge;
      crossing.in_port = hop.to;
    }
    if (is_bridge(hop.from)) crossing.out = hop.edge;
  }
  return crossing;
}

void note_fan_out(FlowContext& flow, const Stage& stage, const Crossing& crossing,
                  double units_per_byte) {
  const auto& bandwidth = flow.hardware.cpu(*crossing.in_port).p2p_fan_out_write_bandwidth;
  const Edge& edge = flow.graph().edge(*crossing.in);
  const auto messages = static_cast<double>(std::max<std::uint64_t>(1, flow.drive.messages));
  flow.resources.note(
      {.port = {ResourceKind::fan_out, flow.graph().device({edge.host, edge.index})},
       .bandwidth = bandwidth->value,
       .engine = stage.engine,
       .to = *crossing.out,
       .flow = flow.number,
       .stage = flow.flow.stages.size(),
       .units_per_byte = units_per_byte,
       .bytes = flow.size().as_double() * messages});
}

/// Peer traffic between root ports has limits of its own, per destination port and by direction of
/// the request.
void use_root_complex(FlowContext& flow, StageSpec& spec, const Stage& stage,
                      double units_per_byte) {
  if (!flow.hardware.through_root_complex(stage.data)) return;
  const Crossing crossing = crossing_of(flow.graph(), stage.data);
  // What ACS sends up comes back down the same root port and crosses nothing else.
  if (crossing.in && crossing.in == crossing.out) return;
  const bool remote = crossing.remote;
  const CpuModel& cpu = flow.hardware.cpu(crossing.bridge);
  if (crossing.in && crossing.out && !stage.reads && cpu.p2p_fan_out_write_bandwidth)
    note_fan_out(flow, stage, crossing, units_per_byte);
  if (remote && !stage.reads && cpu.p2p_remote_write_window) {
    const Bytes window = cpu.p2p_remote_write_window->value;
    const Duration loop =
        flow.hardware.one_way(stage.data) * 2 + flow.hardware.write_latency(stage.to);
    limit(flow, spec, credit_window(window, loop),
          {.kind = LimitKind::remote_peer_writes, .window = window, .round_trip = loop});
  }
  const auto& cap = stage.reads
                        ? (remote ? cpu.p2p_remote_read_bandwidth : cpu.p2p_read_bandwidth)
                        : (remote ? cpu.p2p_remote_write_bandwidth : cpu.p2p_write_bandwidth);
  if (!cap) return;
  const auto out = std::find_if(stage.data.rbegin(), stage.data.rend(), [&](const Hop& hop) {
    return hop.kind == HopKind::pcie && hop.from == crossing.bridge;
  });
  const ResourceId id{remote ? ResourceKind::remote_peer_port : ResourceKind::peer_port,
                      out != stage.data.rend() ? out->to : crossing.bridge,
                      stage.reads ? Direction::reads : Direction::writes};
  use(flow, spec, flow.resources.number(id, cap->value, true), units_per_byte);
}

/// Read requests are traffic in the opposite direction.
void send_requests(FlowContext& flow, StageSpec& spec, const Stage& stage) {
  for (const Hop& hop : stage.requests) {
    if (hop.kind != HopKind::pcie) continue;
    flow.costs.pcie_bytes +=
        spec.units_per_request / std::min(spec.request_packet, flow.size()).as_double();
    if (const auto bandwidth = flow.hardware.link_bandwidth(hop))
      spec.request_resources.push_back(
          flow.resources.number(*resource_of(flow.graph(), hop), *bandwidth, false));
  }
}

/// What the memory and the devices at both ends carry.
void use_ends(FlowContext& flow, StageSpec& spec, const Stage& stage, double units_per_byte) {
  const Graph& graph = flow.graph();
  const Direction direction = stage.reads ? Direction::reads : Direction::writes;
  const VertexId target = stage.reads ? stage.from : stage.to;
  const bool over_c2c = std::any_of(stage.data.begin(), stage.data.end(),
                                    [](const Hop& hop) { return hop.kind == HopKind::c2c; });
  if (!over_c2c && graph.vertex(target).kind == VertexKind::gpu && stage.engine != target) {
    const GpuModel& gpu = flow.hardware.gpu(target);
    use(flow, spec,
        flow.resources.number(
            {ResourceKind::bar, target, direction},
            stage.reads ? gpu.bar_read_bandwidth.value : gpu.bar_write_bandwidth.value, true),
        units_per_byte);
  }
  if (graph.vertex(stage.engine).kind != VertexKind::nic) return;
  if (const auto& own = flow.hardware.nic(stage.engine).dma_bandwidth)
    use(flow, spec,
        flow.resources.number({ResourceKind::dma, stage.engine, direction}, own->value, true),
        units_per_byte);
}

/// What IOTLB misses add to each transfer that is spread over a window, and the bound by concurrent
/// page walks.
Hardware::Translation translation_of(const FlowContext& flow, const Stage& stage) {
  const auto& window = flow.plan.transfer.window;
  return window ? flow.hardware.translation(stage.data, flow.size(), *window)
                : Hardware::Translation{};
}

/// The extra latency of memory reads that are spread over a window: misses of the cache and of the
/// IOTLB.
Duration memory_delay(const FlowContext& flow, const Stage& stage) {
  Duration delay = translation_of(flow, stage).latency;
  const auto& window = flow.plan.transfer.window;
  if (window && flow.graph().vertex(stage.from).kind == VertexKind::memory &&
      *window > flow.hardware.dma_cache())
    if (const auto& miss = flow.hardware.cpu(stage.from).cache_miss_latency) delay += miss->value;
  return delay;
}

void read_by_requests(FlowContext& flow, StageSpec& spec, const Stage& stage,
                      const PcieModel& layout) {
  const Duration round_trip =
      flow.hardware.round_trip(stage.requests, stage.data) + memory_delay(flow, stage);
  const Bytes window = flow.hardware.outstanding_reads(stage.engine, flow.size());
  limit(flow, spec, read_window(window, round_trip),
        {.kind = LimitKind::read_window,
         .at = stage.engine,
         .window = window,
         .round_trip = round_trip});
  spec.request_packet = flow.hardware.max_read_request(stage.engine);
  spec.units_per_request = (layout.read_header.value + layout.tlp_framing.value).as_double();
  send_requests(flow, spec, stage);
  spec.latency += round_trip;
}

void write_posted(FlowContext& flow, StageSpec& spec, const Stage& stage) {
  const Hardware& hardware = flow.hardware;
  if (const auto credits = hardware.credit_bound(stage.data))
    limit(flow, spec, *credits, {.kind = LimitKind::posted_credits});
  if (const auto strict = hardware.strict_order_bound(stage.engine, stage.data))
    limit(flow, spec, *strict, {.kind = LimitKind::strict_order, .at = stage.engine});
  spec.latency += hardware.one_way(stage.data) + hardware.write_latency(stage.to) +
                  translation_of(flow, stage).latency;
}

}  // namespace

void work_by_dma(FlowContext& flow, StageSpec& spec, const Stage& stage) {
  const Hardware& hardware = flow.hardware;
  const PcieModel& layout = hardware.layout(stage.data);
  const Bytes header = stage.reads ? layout.completion_header.value : layout.write_header.value;
  spec.packet = stage.reads ? hardware.completion_size(stage.from, stage.data)
                            : hardware.max_payload(stage.data);
  spec.units_per_packet = (header + layout.tlp_framing.value).as_double();
  const double per_byte = units_per_byte(flow, spec);
  use_route(flow, spec, stage, per_byte);
  use_root_complex(flow, spec, stage, per_byte);
  use_ends(flow, spec, stage, per_byte);
  if (const auto walks = translation_of(flow, stage); walks.bound)
    limit(flow, spec, *walks.bound,
          {.kind = LimitKind::page_walks, .miss_share = walks.miss_share});
  if (stage.reads) read_by_requests(flow, spec, stage, layout);
  else write_posted(flow, spec, stage);
}

}  // namespace gdr::sim
