#include "sim/build.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/check.hpp"

namespace gdr::sim {
namespace {

using namespace gdr::literals;

// NCCL's defaults: a buffer of 4 MiB (NCCL_BUFFSIZE) in 8 steps.
constexpr Bytes default_chunk = 512_KiB;
constexpr int default_chunks = 8;
// Linux hands segments of up to 64 KiB to and from NICs (GSO, GRO) and lets a socket have 4 MiB under way (tcp_wmem).
constexpr Bytes tcp_segment = 64_KiB;
constexpr Bytes tcp_window = 4_MiB;
constexpr std::uint64_t tcp_ip_headers = 52;  // IPv4 20, TCP with time stamps 32
// Bounce buffers that stay below this are served by the last-level cache where DMA allocates in it (two ways of a small one).
constexpr std::uint64_t cache_share = std::uint64_t{8} << 20U;
// A bounce buffer's chunk goes through the NIC in at most so many granules: finer ones change the result by less than a part in this.
constexpr std::uint64_t granules_a_chunk = 32;

double nanoseconds(Duration d) { return d.seconds * 1e9; }

}  // namespace

/// Builds one flow.
class FlowBuilder {
 public:
  FlowBuilder(ScenarioBuilder& all, const TransferPlan& plan, const Drive& drive)
      : all_(all), parts_(*all.parts_), graph_(parts_.graph()), plan_(plan), drive_(drive), size_(plan.transfer.size) {
    const auto& staging = graph_.topology().staging;
    if (staging && staging->chunk) chunk_ = *staging->chunk;
    if (staging && staging->depth) chunks_ = *staging->depth;
    chunk_ = std::min(chunk_, size_);
    if (graph_.topology().fabric) mtu_ = graph_.topology().fabric->mtu.value_or(parts_.fabric().mtu.value);
  }

  void build();

 private:
  /// `of_plan`: the stage is the current one of the plan, not something that the CPU does around it.
  std::size_t push(StageSpec spec, bool of_plan = true) {
    if (of_plan) spec.plan_stage = plan_stage_;
    flow_.stages.push_back(std::move(spec));
    return flow_.stages.size() - 1;
  }
  [[nodiscard]] bool tcp() const { return plan_.transfer.path == PathKind::tcp; }
  [[nodiscard]] bool staged() const { return plan_.transfer.memory == MemoryKind::gpu && plan_.transfer.path != PathKind::gdr && plan_.transfer.path != PathKind::p2p; }
  [[nodiscard]] Bytes nic_granule() const;
  [[nodiscard]] VertexId driver(std::size_t host, std::size_t numa) const { return graph_.socket(host, graph_.socket_of_numa(host, numa)); }

  void use(StageSpec& spec, std::size_t resource, double units_per_byte);
  void use_route(StageSpec& spec, const Stage& stage, double units_per_byte);
  void use_root_complex(StageSpec& spec, const Stage& stage, double units_per_byte);
  void dma(StageSpec& spec, const Stage& stage);
  void limit(StageSpec& spec, Bandwidth payload, const std::string& name);

  void add_launch(const Stage& copy);
  void add_copy(const Stage& stage, bool last);
  void add_post();
  void post_after_copy();
  void add_cpu_copy(const Stage& stage);
  void add_nic_read(const Stage& stage);
  void add_wire(const Stage& stage);
  void add_nic_write(const Stage& stage, bool last);
  void add_windows();
  void add_costs();

  [[nodiscard]] Duration doorbell(DeviceId nic, std::size_t numa) const;
  [[nodiscard]] Duration completion_write(VertexId nic, std::size_t host, std::size_t numa) const;

  ScenarioBuilder& all_;
  const Parts& parts_;
  const Graph& graph_;
  const TransferPlan& plan_;
  const Drive& drive_;
  Bytes size_;
  Bytes chunk_ = default_chunk;
  int chunks_ = default_chunks;
  Bytes mtu_ = 4096_B;
  std::size_t plan_stage_ = 0;
  FlowSpec flow_;
  Costs costs_;
  std::optional<std::size_t> nic_read_, wire_, nic_write_, cpu_out_, cpu_in_, in_launch_;
};

Bytes FlowBuilder::nic_granule() const {
  if (!staged()) return tcp() ? std::min(tcp_segment, std::max(size_, mtu_)) : mtu_;
  if (tcp()) return tcp_segment;
  Bytes granule = mtu_;
  while (granule.count * granules_a_chunk < chunk_.count) granule = granule * 2;
  return granule;
}

void FlowBuilder::use(StageSpec& spec, std::size_t resource, double units_per_byte) {
  spec.resources.push_back(resource);
  ScenarioBuilder::Shared& shared = all_.resources_[resource];
  shared.units += units_per_byte;
  ++shared.uses;
}

void FlowBuilder::limit(StageSpec& spec, Bandwidth payload, const std::string& name) {
  const double per_byte = spec.units_per_byte + spec.units_per_packet / spec.packet.as_double();
  const double units = payload.bytes_per_second * per_byte;
  if (spec.limit > 0 && spec.limit <= units) return;
  spec.limit = units;
  spec.limit_name = name;
}

/// The links, bridges, memory and sockets of the data's way, in its direction.
void FlowBuilder::use_route(StageSpec& spec, const Stage& stage, double units_per_byte) {
  for (const Hop& hop : stage.data) {
    const std::string below = graph_.label(hop.up ? hop.from : hop.to);
    const std::string direction = hop.up ? "up" : "down";
    switch (hop.kind) {
      case HopKind::pcie: {
        const auto bandwidth = parts_.link_bandwidth(hop);
        costs_.pcie_bytes += units_per_byte;
        if (!bandwidth) break;
        const Edge& edge = graph_.edge(hop.edge);
        const std::string name = label(graph_.topology(), {edge.host, edge.index});
        use(spec, all_.resource(fmt::format("{} link {}", name, direction), *bandwidth, false), units_per_byte);
        break;
      }
      case HopKind::root_complex: {
        const VertexId bridge = hop.up ? hop.from : hop.to;
        use(spec, all_.resource(fmt::format("{} root complex {}", below, direction), parts_.cpu(bridge).root_complex_bandwidth.value, true), units_per_byte);
        break;
      }
      case HopKind::memory: {
        const VertexId memory = graph_.vertex(hop.to).kind == VertexKind::memory ? hop.to : hop.from;
        use(spec, all_.resource(fmt::format("{} memory", graph_.label(memory)), parts_.memory_bandwidth(memory), true), units_per_byte);
        break;
      }
      case HopKind::socket_link: {
        const CpuModel& cpu = parts_.cpu(hop.from);
        if (!cpu.socket_link_bandwidth) break;
        const auto links = static_cast<double>(std::max<std::int64_t>(1, cpu.socket_links.value));
        use(spec, all_.resource(fmt::format("{} to {} {}", graph_.label(hop.from), graph_.label(hop.to),
                                            cpu.socket_link_name ? cpu.socket_link_name->value : "socket link"),
                                cpu.socket_link_bandwidth->value * links, true), units_per_byte);
        break;
      }
      default: break;
    }
  }
}

/// Peer traffic between root ports has limits of its own, per destination port and by direction of the request.
void FlowBuilder::use_root_complex(StageSpec& spec, const Stage& stage, double units_per_byte) {
  if (!parts_.through_root_complex(stage.data)) return;
  const bool remote = std::any_of(stage.data.begin(), stage.data.end(), [](const Hop& hop) { return hop.kind == HopKind::socket_link; });
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
  const CpuModel& cpu = parts_.cpu(bridge);
  const auto& cap = stage.reads ? (remote ? cpu.p2p_remote_read_bandwidth : cpu.p2p_read_bandwidth)
                                : (remote ? cpu.p2p_remote_write_bandwidth : cpu.p2p_write_bandwidth);
  if (!cap) return;
  const auto out = std::find_if(stage.data.rbegin(), stage.data.rend(), [&](const Hop& hop) { return hop.kind == HopKind::pcie && hop.from == bridge; });
  const std::string port = out != stage.data.rend() ? graph_.label(out->to) : graph_.label(bridge);
  use(spec, all_.resource(fmt::format("{}peer {} through the root complex to {}", remote ? "remote " : "", stage.reads ? "reads" : "writes", port),
                          cap->value, true), units_per_byte);
}

/// What PCIe makes of a DMA: headers, window or credits, latency, both ends' limits.
void FlowBuilder::dma(StageSpec& spec, const Stage& stage) {
  const PcieModel& layout = parts_.layout(stage.data);
  if (stage.reads) {
    spec.packet = parts_.completion_size(stage.from, stage.data);
    spec.units_per_packet = (layout.completion_header.value + layout.tlp_framing.value).as_double();
  } else {
    spec.packet = parts_.max_payload(stage.data);
    spec.units_per_packet = (layout.write_header.value + layout.tlp_framing.value).as_double();
  }
  // Small transfers do not fill their last packet: their share of headers is what they have.
  const Bytes piece = std::min(spec.packet, size_);
  const double per_byte = 1 + spec.units_per_packet / piece.as_double();
  use_route(spec, stage, per_byte);
  use_root_complex(spec, stage, per_byte);
  const bool target_gpu = graph_.vertex(stage.reads ? stage.from : stage.to).kind == VertexKind::gpu && stage.engine != (stage.reads ? stage.from : stage.to);
  if (target_gpu) {
    const VertexId target = stage.reads ? stage.from : stage.to;
    const GpuModel& gpu = parts_.gpu(target);
    use(spec, all_.resource(fmt::format("{} BAR {}", graph_.label(target), stage.reads ? "reads" : "writes"),
                            stage.reads ? gpu.bar_read_bandwidth.value : gpu.bar_write_bandwidth.value, true), per_byte);
  }
  const bool nic = graph_.vertex(stage.engine).kind == VertexKind::nic;
  if (nic && parts_.nic(stage.engine).dma_bandwidth)
    use(spec, all_.resource(fmt::format("{} DMA {}", graph_.label(stage.engine), stage.reads ? "reads" : "writes"),
                            parts_.nic(stage.engine).dma_bandwidth->value, true), per_byte);
  if (stage.reads) {
    const Duration round_trip = parts_.round_trip(stage);
    const Bytes request = parts_.max_read_request(stage.engine);
    limit(spec, read_window(parts_.outstanding_reads(stage.engine), round_trip),
          fmt::format("{} read window ({} over {:.0f} ns)", graph_.label(stage.engine), to_string(parts_.outstanding_reads(stage.engine)), round_trip.ns()));
    spec.request_packet = request;
    spec.units_per_request = (layout.read_header.value + layout.tlp_framing.value).as_double();
    for (const Hop& hop : stage.requests) {
      if (hop.kind != HopKind::pcie) continue;
      costs_.pcie_bytes += spec.units_per_request / std::min(request, size_).as_double();
      const auto bandwidth = parts_.link_bandwidth(hop);
      if (!bandwidth) continue;
      const Edge& edge = graph_.edge(hop.edge);
      spec.request_resources.push_back(all_.resource(
          fmt::format("{} link {}", label(graph_.topology(), {edge.host, edge.index}), hop.up ? "up" : "down"), *bandwidth, false));
    }
    spec.latency += round_trip;
    return;
  }
  if (const auto credits = parts_.credit_bound(stage.data)) limit(spec, *credits, "posted-write credits");
  const Device* engine = graph_.device_at(stage.engine);
  for (const Hop& hop : stage.data)
    if (hop.kind == HopKind::root_complex && hop.up && nic && engine->relaxed_ordering.has_value() && !*engine->relaxed_ordering)
      if (const CpuModel& cpu = parts_.cpu(hop.from); cpu.relaxed_ordering_needed.value && cpu.strict_order_write_bandwidth)
        limit(spec, cpu.strict_order_write_bandwidth->value, fmt::format("{} writes without relaxed ordering", graph_.label(stage.engine)));
  spec.latency += parts_.one_way(stage.data) + parts_.write_latency(stage.to);
}

/// The CPU calls the copy: it costs the calling thread its time, and the engine starts a little later.
void FlowBuilder::add_launch(const Stage& copy) {
  const GpuModel& gpu = parts_.gpu(copy.engine);
  StageSpec spec;
  spec.name = fmt::format("launch copy on {}", graph_.label(copy.engine));
  spec.granule = chunk_;
  spec.units_per_byte = 0;
  spec.setup = gpu.copy_call_cost.value;
  spec.latency = Duration{std::max(0.0, gpu.copy_launch_latency.value.seconds - gpu.copy_call_cost.value.seconds)};
  costs_.cpu_seconds += gpu.copy_call_cost.value.seconds / chunk_.as_double();
  in_launch_ = push(std::move(spec), false);
}

void FlowBuilder::add_copy(const Stage& stage, bool last) {
  add_launch(stage);
  const GpuModel& gpu = parts_.gpu(stage.engine);
  StageSpec spec;
  spec.name = fmt::format("copy {} to {}", graph_.label(stage.from), graph_.label(stage.to));
  spec.granule = chunk_;
  dma(spec, stage);
  const double per_byte = spec.units_per_byte + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  use(spec, all_.resource(fmt::format("{} copy engines", graph_.label(stage.engine)),
                          gpu.copy_bandwidth.value * static_cast<double>(gpu.copy_engines.value), true), per_byte);
  limit(spec, gpu.copy_bandwidth.value, fmt::format("{} copy engine", graph_.label(stage.engine)));
  // The next mover waits until the CPU knows that the copy is done; the last byte is visible before that.
  const bool told = last && plan_.transfer.operation == Operation::send;
  if (!last || told) spec.latency += gpu.copy_completion_latency.value;
  push(std::move(spec));
}

/// From the CPU's store to the NIC having understood the work request.
Duration FlowBuilder::doorbell(DeviceId nic, std::size_t numa) const {
  const VertexId to = graph_.device(nic);
  const VertexId socket = driver(nic.host, numa);
  const Route way = *graph_.local_route(socket, to);
  Duration time = parts_.cpu(socket).mmio_write_latency.value + parts_.one_way(way) + parts_.nic(to).send_latency.value;
  const NicModel& model = parts_.nic(to);
  if (!model.blueflame.value && model.wqe_fetch.value) {
    const Route fetch = *graph_.local_route(to, graph_.memory(nic.host, numa));
    time += parts_.one_way(fetch) * 2 + parts_.cpu(socket).memory_latency.value;
  }
  return time;
}

Duration FlowBuilder::completion_write(VertexId nic, std::size_t host, std::size_t numa) const {
  const VertexId memory = graph_.memory(host, numa);
  return parts_.one_way(*graph_.local_route(nic, memory)) + parts_.write_latency(memory) + parts_.cpu(memory).completion_poll_latency.value;
}

void FlowBuilder::add_post() {
  const bool read = plan_.transfer.operation == Operation::read;
  const DeviceId nic = read ? *plan_.to_nic : *plan_.from_nic;
  const NicModel& model = parts_.nic(graph_.device(nic));
  StageSpec spec;
  spec.name = fmt::format("post to {}", label(graph_.topology(), nic));
  spec.whole_message = true;
  spec.units_per_byte = 0;
  spec.units_per_granule = nanoseconds(model.message_cost.value);
  spec.resources.push_back(all_.pipeline(fmt::format("{} message pipeline", label(graph_.topology(), nic))));
  const double own = nanoseconds(model.queue_pair_message_cost.value) / drive_.queue_pairs;
  spec.limit = 1e9 * spec.units_per_granule / std::max(own, 1e-3);
  spec.limit_name = fmt::format("{} messages of a queue pair", label(graph_.topology(), nic));
  spec.latency = doorbell(nic, read ? plan_.to_numa : plan_.from_numa);
  if (read) {
    // The request crosses the network before the other side's NIC starts to read.
    const NicModel& responder = parts_.nic(graph_.device(*plan_.from_nic));
    spec.latency += parts_.wire_latency() + responder.receive_latency.value;
  }
  const CpuModel& cpu = parts_.cpu(driver(nic.host, read ? plan_.to_numa : plan_.from_numa));
  // One thread posts; it is busy with each message for so long.
  spec.setup = cpu.post_cost.value;
  if (plan_.transfer.operation == Operation::send) {
    spec.setup += cpu.two_sided_cost.value;
    costs_.cpu_seconds += parts_.cpu(driver(plan_.transfer.to.host, plan_.to_numa)).two_sided_cost.value.seconds / size_.as_double();
  }
  costs_.cpu_seconds += spec.setup.seconds / size_.as_double();
  push(std::move(spec), false);
}

/// A staged chunk is posted by the thread that saw its copy end.
void FlowBuilder::post_after_copy() {
  Duration& latency = flow_.stages.back().latency;
  latency += doorbell(*plan_.from_nic, plan_.from_numa);
  if (plan_.transfer.operation == Operation::send) latency += parts_.cpu(driver(plan_.transfer.from.host, plan_.from_numa)).two_sided_cost.value;
}

void FlowBuilder::add_cpu_copy(const Stage& stage) {
  const CpuModel& cpu = parts_.cpu(stage.engine);
  const bool out = !nic_read_;
  StageSpec spec;
  spec.name = fmt::format("socket {} on {}", out ? "send" : "receive", graph_.label(stage.engine));
  spec.granule = std::min(tcp_segment, size_);
  spec.setup = cpu.system_call_cost.value + cpu.packet_cost.value;
  const std::size_t memory = all_.resource(fmt::format("{} memory", graph_.label(stage.from)), parts_.memory_bandwidth(stage.from), true);
  use(spec, memory, 1);
  use(spec, memory, 1);
  limit(spec, cpu.copy_bandwidth_per_core.value, fmt::format("one core's copies on {}", graph_.label(stage.engine)));
  if (out) spec.latency = doorbell(*plan_.from_nic, plan_.from_numa);
  costs_.cpu_seconds += spec.setup.seconds / spec.granule.as_double() + 1 / cpu.copy_bandwidth_per_core.value.bytes_per_second;
  (out ? cpu_out_ : cpu_in_) = push(std::move(spec));
}

void FlowBuilder::add_nic_read(const Stage& stage) {
  StageSpec spec;
  spec.name = fmt::format("{} reads {}", graph_.label(stage.engine), graph_.label(stage.from));
  spec.granule = nic_granule();
  dma(spec, stage);
  nic_read_ = push(std::move(spec));
}

void FlowBuilder::add_wire(const Stage& stage) {
  const FabricModel& fabric = parts_.fabric();
  StageSpec spec;
  spec.name = "wire";
  spec.granule = nic_granule();
  spec.packet = tcp() ? Bytes{fabric.tcp_mtu.value.count - tcp_ip_headers} : mtu_;
  spec.units_per_packet = (tcp() ? fabric.tcp_header.value : fabric.packet_header.value).as_double();
  const double per_byte = 1 + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  for (const VertexId nic : {stage.from, stage.to}) {
    const Device& device = *graph_.device_at(nic);
    const Bandwidth rate = device.port_rate.value_or(parts_.nic(nic).port_rate.value);
    use(spec, all_.resource(fmt::format("{} port {}", graph_.label(nic), nic == stage.from ? "out" : "in"), rate, false), per_byte);
  }
  if (!tcp())
    if (const auto& own = parts_.nic(stage.from).queue_pair_bandwidth)
      limit(spec, own->value * drive_.queue_pairs, fmt::format("{} queue pair", graph_.label(stage.from)));
  spec.latency = parts_.wire_latency() + parts_.nic(stage.to).receive_latency.value;
  wire_ = push(std::move(spec));
}

void FlowBuilder::add_nic_write(const Stage& stage, bool last) {
  StageSpec spec;
  spec.name = fmt::format("{} writes {}", graph_.label(stage.engine), graph_.label(stage.to));
  spec.granule = nic_granule();
  dma(spec, stage);
  const CpuModel& cpu = parts_.cpu(driver(plan_.transfer.to.host, plan_.to_numa));
  if (tcp()) {
    spec.latency += cpu.interrupt_latency.value;
  } else if (!last || plan_.transfer.operation == Operation::send) {
    // A receiver that must act on the data (a staging copy, a posted receive) sees its completion, written behind the data.
    spec.latency = std::max(spec.latency, completion_write(stage.engine, plan_.transfer.to.host, plan_.to_numa));
    if (plan_.transfer.operation == Operation::send) spec.latency += cpu.two_sided_cost.value;
  }
  nic_write_ = push(std::move(spec));
}

void FlowBuilder::add_windows() {
  const std::size_t last = flow_.stages.size() - 1;
  flow_.completion_stage = last;
  Duration& completion = flow_.completion_latency;
  if (!wire_) {
    completion = parts_.gpu(plan_.stages.back().engine).copy_completion_latency.value;
  } else if (plan_.transfer.operation == Operation::read && !tcp()) {
    completion = completion_write(graph_.device(*plan_.to_nic), plan_.transfer.to.host, plan_.to_numa);
  } else if (tcp()) {
    flow_.completion_stage = *cpu_out_;  // a send returns when the kernel has the bytes
  } else {
    flow_.completion_stage = *wire_;
    completion = parts_.nic(graph_.device(*plan_.to_nic)).acknowledge_latency.value + parts_.wire_latency() +
                 parts_.nic(graph_.device(*plan_.from_nic)).acknowledge_latency.value +
                 completion_write(graph_.device(*plan_.from_nic), plan_.transfer.from.host, plan_.from_numa);
  }
  const auto window = [&](std::string name, std::size_t first, std::size_t to, Bytes limit, Duration back) {
    flow_.windows.push_back({std::move(name), first, to, limit, back});
  };
  const auto depth = static_cast<std::uint64_t>(drive_.depth) * static_cast<std::uint64_t>(drive_.queue_pairs);
  const std::size_t completed = tcp() ? last : flow_.completion_stage;
  window(fmt::format("queue depth {}", depth), 0, completed, size_ * depth, tcp() ? Duration{} : completion);
  const Bytes ring = chunk_ * static_cast<std::uint64_t>(chunks_);
  if (!wire_) {
    if (staged()) window("bounce buffers", 0, last, ring, completion);
    return;
  }
  const NicModel& sender = parts_.nic(graph_.device(*plan_.from_nic));
  const Bytes granule = nic_granule();
  window("NIC buffer", *nic_read_, *wire_, std::max(sender.outstanding_reads.value * 4, granule * 8), {});
  if (tcp()) {
    window("socket buffers", *cpu_out_, *cpu_in_, tcp_window, parts_.wire_latency());
  } else {
    window("queue pair window", *wire_, *nic_write_, std::max(sender.queue_pair_window.value * static_cast<std::uint64_t>(drive_.queue_pairs), granule * 2), completion);
    if (plan_.transfer.operation == Operation::read)
      window("outstanding RDMA reads", 0, last, size_ * static_cast<std::uint64_t>(sender.max_read_atomic.value * drive_.queue_pairs), {});
  }
  if (!staged()) return;
  window("bounce buffers", 0, tcp() ? *cpu_out_ : *wire_, ring, tcp() ? Duration{} : completion);
  window("bounce buffers", tcp() ? *in_launch_ : *nic_read_, last, ring, parts_.wire_latency());
}

void FlowBuilder::add_costs() {
  costs_.host_memory_passes = host_memory_passes(plan_, graph_);
  const VertexId memory = graph_.memory(plan_.transfer.from.host, plan_.from_numa);
  const bool bounce = staged() || tcp();
  const bool cached = bounce && parts_.cpu(memory).cache_absorbs_dma.value && chunk_.count * static_cast<std::uint64_t>(chunks_) <= cache_share;
  costs_.dram_bytes = cached ? 0 : costs_.host_memory_passes;
  all_.costs_.push_back(costs_);
}

void FlowBuilder::build() {
  flow_.name = fmt::format("{} {} to {}", to_string(plan_.transfer.path), label(graph_.topology(), plan_.transfer.from), label(graph_.topology(), plan_.transfer.to));
  flow_.message = size_;
  flow_.messages = drive_.messages;
  flow_.start = drive_.start;
  for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
    const Stage& stage = plan_.stages[i];
    plan_stage_ = i;
    const bool last = i + 1 == plan_.stages.size();
    switch (stage.mover) {
      case Mover::copy_engine: add_copy(stage, last); break;
      case Mover::cpu_copy: add_cpu_copy(stage); break;
      case Mover::nic_read:
        // A staged transfer posts each chunk when its copy is done, so the post is part of that copy's latency.
        if (i == 0) add_post();
        else if (!tcp()) post_after_copy();
        add_nic_read(stage);
        break;
      case Mover::wire: add_wire(stage); break;
      case Mover::nic_write: add_nic_write(stage, last); break;
    }
  }
  add_windows();
  add_costs();
  all_.flows_.push_back(std::move(flow_));
}

std::size_t ScenarioBuilder::resource(const std::string& name, Bandwidth capacity, bool payload) {
  const auto [at, added] = index_.emplace(name, resources_.size());
  if (added) resources_.push_back({name, capacity.bytes_per_second, payload, 0, 0});
  return at->second;
}

/// A NIC's message pipeline is worth one second a second, counted in nanoseconds.
std::size_t ScenarioBuilder::pipeline(const std::string& name) { return resource(name, {1e9}, false); }

void ScenarioBuilder::add(const TransferPlan& plan, const Drive& drive) {
  check(drive.depth > 0 && drive.queue_pairs > 0, "a transfer without depth or queue pairs");
  FlowBuilder(*this, plan, drive).build();
}

Scenario ScenarioBuilder::take() {
  Scenario scenario;
  for (const Shared& shared : resources_) {
    // Where capacity counts payload and stages count wire bytes, the capacity grows by their mean share of headers. Exact when
    // all flows have the same, as between equal devices.
    const double units = shared.payload && shared.uses > 0 ? shared.units / shared.uses : 1;
    scenario.resources.push_back({shared.name, shared.capacity * units});
  }
  scenario.flows = std::move(flows_);
  return scenario;
}

}  // namespace gdr::sim
