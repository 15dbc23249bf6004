#include <fmt/format.h>

#include "sim/flow/flow_builder.hpp"

// What a stage works on: the resources along the data's way, PCIe's overhead, windows and credits.

namespace gdr::sim {

void FlowBuilder::use(StageSpec& spec, std::size_t resource, double units_per_byte) {
  spec.resources.push_back(resource);
  ScenarioBuilder::Shared& shared = all_.resources_[resource];
  // Weighted by the bytes that the flow moves: a flow of one byte is all headers and must not make
  // room for another.
  const double bytes =
      size_.as_double() * static_cast<double>(std::max<std::uint64_t>(1, drive_.messages));
  shared.units += units_per_byte * bytes;
  shared.bytes += bytes;
}

void FlowBuilder::limit(StageSpec& spec, Bandwidth payload, const std::string& name) {
  // Small transfers do not fill their packets: the limit is one of payload, whatever its headers.
  const double per_byte =
      spec.units_per_byte + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  const double units = payload.bytes_per_second * per_byte;
  if (spec.limit > 0 && spec.limit <= units) return;
  spec.limit = units;
  spec.limit_name = name;
}

std::string link_resource(const Hardware& hardware, const Hop& hop) {
  const Graph& graph = hardware.graph();
  const char* const direction = hop.up ? "up" : "down";
  switch (hop.kind) {
    case HopKind::pcie: {
      const Edge& edge = graph.edge(hop.edge);
      return fmt::format("{} link {}", label(graph.topology(), {edge.host, edge.index}), direction);
    }
    case HopKind::root_complex:
      return fmt::format("{} root complex {}", graph.label(hop.up ? hop.from : hop.to), direction);
    case HopKind::memory:
      return graph.label(graph.vertex(hop.to).kind == VertexKind::memory ? hop.to : hop.from) +
             " memory";
    case HopKind::socket_link: {
      const auto& name = hardware.cpu(hop.from).socket_link_name;
      return fmt::format("{} to {} {}", graph.label(hop.from), graph.label(hop.to),
                         name ? name->value : "socket link");
    }
    case HopKind::c2c: {
      const Edge& edge = graph.edge(hop.edge);
      const Host& host = graph.topology().hosts.at(edge.host);
      return fmt::format("{}/{} C2C {}", host.name, host.nvlinks.at(edge.index).from, direction);
    }
    case HopKind::wire:
      return fmt::format("{} port {}", graph.label(hop.up ? hop.from : hop.to),
                         hop.up ? "out" : "in");
    case HopKind::nvlink:
      break;
  }
  return {};
}

/// The links, bridges, memory and sockets of the data's way, in its direction.
void FlowBuilder::use_route(StageSpec& spec, const Stage& stage, double units_per_byte) {
  for (const Hop& hop : stage.data) {
    std::optional<Bandwidth> bandwidth;
    bool payload = true;
    switch (hop.kind) {
      case HopKind::pcie:
        costs_.pcie_bytes += units_per_byte;
        bandwidth = hardware_.link_bandwidth(hop);
        payload = false;
        break;
      case HopKind::root_complex:
        bandwidth = hardware_.cpu(hop.up ? hop.from : hop.to).root_complex_bandwidth.value;
        break;
      case HopKind::memory:
        bandwidth = hardware_.memory_bandwidth(
            graph_.vertex(hop.to).kind == VertexKind::memory ? hop.to : hop.from);
        break;
      case HopKind::socket_link:
        bandwidth = hardware_.socket_link_bandwidth(hop);
        break;
      case HopKind::c2c:
        bandwidth = hardware_.c2c_bandwidth(hop);
        break;
      default:
        break;
    }
    if (bandwidth)
      use(spec, all_.resource(link_resource(hardware_, hop), *bandwidth, payload), units_per_byte);
  }
}

/// Peer traffic between root ports has limits of its own, per destination port and by direction of
/// the request.
void FlowBuilder::use_root_complex(StageSpec& spec, const Stage& stage, double units_per_byte) {
  if (!hardware_.through_root_complex(stage.data)) return;
  const bool remote = std::any_of(stage.data.begin(), stage.data.end(),
                                  [](const Hop& hop) { return hop.kind == HopKind::socket_link; });
  VertexId bridge = 0;
  std::optional<std::size_t> in;
  std::optional<std::size_t> back;
  for (const Hop& hop : stage.data) {
    if (graph_.vertex(hop.to).kind == VertexKind::host_bridge) bridge = hop.to;
    if (hop.kind != HopKind::pcie) continue;
    if (graph_.vertex(hop.to).kind == VertexKind::host_bridge) in = hop.edge;
    if (graph_.vertex(hop.from).kind == VertexKind::host_bridge) back = hop.edge;
  }
  // What ACS sends up comes back down the same root port: that crosses nothing but the port.
  if (in && in == back) return;
  const CpuModel& cpu = hardware_.cpu(bridge);
  if (in && back && !stage.reads && cpu.p2p_fan_out_write_bandwidth)
    note_fan_out(stage, *in, *back, units_per_byte);
  if (remote && !stage.reads && cpu.p2p_remote_write_window) {
    const Duration loop = hardware_.one_way(stage.data) * 2 + hardware_.write_latency(stage.to);
    limit(spec, credit_window(cpu.p2p_remote_write_window->value, loop),
          fmt::format("peer writes under way across sockets {}/{:.0f}ns",
                      to_string(cpu.p2p_remote_write_window->value), loop.ns()));
  }
  const auto& cap = stage.reads
                        ? (remote ? cpu.p2p_remote_read_bandwidth : cpu.p2p_read_bandwidth)
                        : (remote ? cpu.p2p_remote_write_bandwidth : cpu.p2p_write_bandwidth);
  if (!cap) return;
  const auto out = std::find_if(stage.data.rbegin(), stage.data.rend(), [&](const Hop& hop) {
    return hop.kind == HopKind::pcie && hop.from == bridge;
  });
  const std::string port = out != stage.data.rend() ? graph_.label(out->to) : graph_.label(bridge);
  use(spec,
      all_.resource(fmt::format("{}peer {} to {}", remote ? "remote " : "",
                                stage.reads ? "reads" : "writes", port),
                    cap->value, true),
      units_per_byte);
}

void FlowBuilder::note_fan_out(const Stage& stage, std::size_t in, std::size_t out,
                               double units_per_byte) {
  const Edge& edge = graph_.edge(in);
  const std::string port = label(graph_.topology(), {edge.host, edge.index});
  ScenarioBuilder::FanOut& fan_out = all_.fan_outs_[port];
  VertexId bridge = 0;
  for (const Hop& hop : stage.data)
    if (hop.edge == in) bridge = hop.to;
  fan_out.bandwidth = hardware_.cpu(bridge).p2p_fan_out_write_bandwidth->value;
  fan_out.engines.insert(stage.engine);
  fan_out.ports.insert(out);
  const double bytes =
      size_.as_double() * static_cast<double>(std::max<std::uint64_t>(1, drive_.messages));
  fan_out.uses.push_back({all_.flows_.size(), flow_.stages.size(), units_per_byte, bytes});
}

/// Read requests are traffic of the opposite direction.
void FlowBuilder::send_requests(StageSpec& spec, const Stage& stage, Bytes request) {
  for (const Hop& hop : stage.requests) {
    if (hop.kind != HopKind::pcie) continue;
    costs_.pcie_bytes += spec.units_per_request / std::min(request, size_).as_double();
    const auto bandwidth = hardware_.link_bandwidth(hop);
    if (!bandwidth) continue;
    const Edge& edge = graph_.edge(hop.edge);
    spec.request_resources.push_back(
        all_.resource(fmt::format("{} link {}", label(graph_.topology(), {edge.host, edge.index}),
                                  hop.up ? "up" : "down"),
                      *bandwidth, false));
  }
}

/// What PCIe makes of a DMA: headers, window or credits, latency, both ends' limits.
void FlowBuilder::dma(StageSpec& spec, const Stage& stage) {
  const PcieModel& layout = hardware_.layout(stage.data);
  if (stage.reads) {
    spec.packet = hardware_.completion_size(stage.from, stage.data);
    spec.units_per_packet = (layout.completion_header.value + layout.tlp_framing.value).as_double();
  } else {
    spec.packet = hardware_.max_payload(stage.data);
    spec.units_per_packet = (layout.write_header.value + layout.tlp_framing.value).as_double();
  }
  // Small transfers do not fill their last packet: their share of headers is what they have.
  const Bytes piece = std::min(spec.packet, size_);
  const double per_byte = 1 + spec.units_per_packet / piece.as_double();
  use_route(spec, stage, per_byte);
  use_root_complex(spec, stage, per_byte);
  const bool over_c2c = std::any_of(stage.data.begin(), stage.data.end(),
                                    [](const Hop& hop) { return hop.kind == HopKind::c2c; });
  const bool target_gpu =
      !over_c2c && graph_.vertex(stage.reads ? stage.from : stage.to).kind == VertexKind::gpu &&
      stage.engine != (stage.reads ? stage.from : stage.to);
  if (target_gpu) {
    const VertexId target = stage.reads ? stage.from : stage.to;
    const GpuModel& gpu = hardware_.gpu(target);
    use(spec,
        all_.resource(
            fmt::format("{} BAR {}", graph_.label(target), stage.reads ? "reads" : "writes"),
            stage.reads ? gpu.bar_read_bandwidth.value : gpu.bar_write_bandwidth.value, true),
        per_byte);
  }
  translate(spec, stage);
  const bool nic = graph_.vertex(stage.engine).kind == VertexKind::nic;
  if (nic && hardware_.nic(stage.engine).dma_bandwidth)
    use(spec,
        all_.resource(
            fmt::format("{} DMA {}", graph_.label(stage.engine), stage.reads ? "reads" : "writes"),
            hardware_.nic(stage.engine).dma_bandwidth->value, true),
        per_byte);
  if (stage.reads) {
    const Duration round_trip =
        hardware_.round_trip(stage.requests, stage.data) + memory_delay(stage);
    const Bytes request = hardware_.max_read_request(stage.engine);
    const Bytes window = hardware_.outstanding_reads(stage.engine, size_);
    limit(spec, read_window(window, round_trip),
          fmt::format("{} read window {}/{:.0f}ns", graph_.label(stage.engine), to_string(window),
                      round_trip.ns()));
    spec.request_packet = request;
    spec.units_per_request = (layout.read_header.value + layout.tlp_framing.value).as_double();
    send_requests(spec, stage, request);
    spec.latency += round_trip;
    return;
  }
  if (const auto credits = hardware_.credit_bound(stage.data))
    limit(spec, *credits, "posted-write credits");
  const Device* engine = graph_.device_at(stage.engine);
  for (const Hop& hop : stage.data)
    if (hop.kind == HopKind::root_complex && hop.up && nic &&
        engine->relaxed_ordering.has_value() && !*engine->relaxed_ordering)
      if (const CpuModel& cpu = hardware_.cpu(hop.from);
          cpu.relaxed_ordering_needed.value && cpu.strict_order_write_bandwidth)
        limit(spec, cpu.strict_order_write_bandwidth->value,
              fmt::format("{} writes without relaxed ordering", graph_.label(stage.engine)));
  spec.latency += hardware_.one_way(stage.data) + hardware_.write_latency(stage.to);
  if (plan_.transfer.window)
    spec.latency += hardware_.translation(stage.data, size_, *plan_.transfer.window).latency;
}

/// What a read of memory that is spread over a window waits for beside the usual: the cache's
/// misses and the IOTLB's.
Duration FlowBuilder::memory_delay(const Stage& stage) const {
  Duration delay;
  if (!plan_.transfer.window) return delay;
  delay = hardware_.translation(stage.data, size_, *plan_.transfer.window).latency;
  if (graph_.vertex(stage.from).kind == VertexKind::memory &&
      plan_.transfer.window->count > cache_share)
    if (const auto& miss = hardware_.cpu(stage.from).cache_miss_latency) delay += miss->value;
  return delay;
}

/// Page walks bound how many transfers a second miss the IOTLB.
void FlowBuilder::translate(StageSpec& spec, const Stage& stage) {
  if (!plan_.transfer.window) return;
  const Hardware::Translation translation =
      hardware_.translation(stage.data, size_, *plan_.transfer.window);
  if (translation.bound)
    limit(spec, *translation.bound,
          fmt::format("IOMMU page walks ({:.0f} % of translations miss)",
                      translation.miss_share * 100));
}

/// A copy over NVLink: all links that join the two GPUs, shared by what leaves one and by what
/// enters the other.
void FlowBuilder::over_nvlink(StageSpec& spec, const Stage& stage) {
  const Bandwidth bandwidth = hardware_.nvlink_bandwidth(plan_.transfer.from, plan_.transfer.to);
  const bool switched = stage.data.size() > 1;
  const std::string from = graph_.label(stage.from);
  const std::string to = graph_.label(stage.to);
  if (switched) {
    use(spec, all_.resource(from + " NVLink out", bandwidth, false), 1);
    use(spec, all_.resource(to + " NVLink in", bandwidth, false), 1);
  } else {
    use(spec, all_.resource(fmt::format("{} to {} NVLink", from, to), bandwidth, false), 1);
  }
  // Every byte is read in one device memory and written in the other.
  for (const VertexId gpu : {stage.from, stage.to})
    use(spec,
        all_.resource(graph_.label(gpu) + " memory", hardware_.gpu(gpu).memory_bandwidth.value,
                      false),
        1);
  const Duration one_way = hardware_.nvlink_latency(stage.data);
  spec.latency += stage.reads ? one_way * 2 : one_way;
}

}  // namespace gdr::sim
