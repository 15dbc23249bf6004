#include "sim/flow/flow_builder.hpp"

#include <fmt/format.h>

// The stages of a flow in order, with what the CPUs do between them, and the windows over them.

namespace gdr::sim {
namespace {

using namespace gdr::literals;

// Linux hands segments of up to 64 KiB to and from NICs (GSO, GRO) and lets a socket have 4 MiB
// under way (tcp_wmem).
constexpr Bytes tcp_segment = 64_KiB;
constexpr Bytes tcp_window = 4_MiB;
constexpr std::uint64_t tcp_ip_headers = 52;  // IPv4 20, TCP with time stamps 32
// A bounce buffer's chunk goes through the NIC in at most so many granules: finer ones change the
// result by less than a part in this.
constexpr std::uint64_t granules_a_chunk = 32;

double nanoseconds(Duration d) { return d.seconds * 1e9; }

}  // namespace

Bytes FlowBuilder::nic_granule() const {
  if (drive_.granules > 0 && !staged() && !tcp()) {
    Bytes granule = mtu_;
    while (granule.count * drive_.granules < size_.count) granule = granule * 2;
    return granule;
  }
  if (!staged()) return tcp() ? std::min(tcp_segment, std::max(size_, mtu_)) : mtu_;
  if (tcp()) return tcp_segment;
  Bytes granule = mtu_;
  while (granule.count * granules_a_chunk < chunk_.count) granule = granule * 2;
  return granule;
}

/// The CPU calls the copy: it costs the calling thread its time, and the engine starts a little
/// later.
void FlowBuilder::add_launch(const Stage& copy) {
  const GpuModel& gpu = hardware_.gpu(copy.engine);
  StageSpec spec;
  spec.name = fmt::format("launch copy on {}", graph_.label(copy.engine));
  spec.granule = chunk_;
  spec.units_per_byte = 0;
  spec.setup = gpu.copy_call_cost.value;
  spec.latency = Duration{
      std::max(0.0, gpu.copy_launch_latency.value.seconds - gpu.copy_call_cost.value.seconds)};
  costs_.cpu_seconds += gpu.copy_call_cost.value.seconds / chunk_.as_double();
  in_launch_ = push(std::move(spec), false);
}

void FlowBuilder::add_copy(const Stage& stage, bool last) {
  add_launch(stage);
  const GpuModel& gpu = hardware_.gpu(stage.engine);
  StageSpec spec;
  spec.name = fmt::format("copy {} to {}", graph_.label(stage.from), graph_.label(stage.to));
  spec.granule = chunk_;
  if (plan_.transfer.path == PathKind::nvlink) over_nvlink(spec, stage);
  else dma(spec, stage);
  const double per_byte =
      spec.units_per_byte + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  // Over NVLink copies are spread over engines and limited by the links and the memory;
  // copy_bandwidth is an engine's PCIe rate.
  const bool by_pcie = std::any_of(stage.data.begin(), stage.data.end(),
                                   [](const Hop& hop) { return hop.kind == HopKind::pcie; });
  if (by_pcie) {
    use(spec,
        all_.resource(fmt::format("{} copy engines", graph_.label(stage.engine)),
                      gpu.copy_bandwidth.value * static_cast<double>(gpu.copy_engines.value), true),
        per_byte);
    limit(spec, gpu.copy_bandwidth.value,
          fmt::format("{} copy engine", graph_.label(stage.engine)));
  }
  // The next mover waits until the CPU knows that the copy is done; the last byte is visible before
  // that.
  const bool told = last && plan_.transfer.operation == Operation::send;
  if (!last || told) spec.latency += gpu.copy_completion_latency.value;
  push(std::move(spec));
}

/// From the CPU's store to the NIC having understood the work request.
Duration FlowBuilder::doorbell(DeviceId nic, std::size_t numa) const {
  const VertexId to = graph_.device(nic);
  const VertexId socket = driver(nic.host, numa);
  const Route way = *graph_.local_route(socket, to);
  Duration time = hardware_.cpu(socket).mmio_write_latency.value + hardware_.one_way(way) +
                  hardware_.nic(to).send_latency.value;
  const NicModel& model = hardware_.nic(to);
  const bool pushed = model.blueflame.value && plan_.transfer.push_request.value_or(true);
  if (!pushed && model.wqe_fetch.value) {
    const Route fetch = *graph_.local_route(to, graph_.memory(nic.host, numa));
    time += hardware_.one_way(fetch) * 2 + hardware_.cpu(socket).memory_latency.value;
  }
  return time;
}

Duration FlowBuilder::completion_write(VertexId nic, std::size_t host, std::size_t numa) const {
  const VertexId memory = graph_.memory(host, numa);
  return hardware_.one_way(*graph_.local_route(nic, memory)) + hardware_.write_latency(memory) +
         hardware_.cpu(memory).completion_poll_latency.value;
}

void FlowBuilder::add_post() {
  const bool read = plan_.transfer.operation == Operation::read;
  const DeviceId nic = read ? *plan_.to_nic : *plan_.from_nic;
  const NicModel& model = hardware_.nic(graph_.device(nic));
  StageSpec spec;
  spec.name = fmt::format("post to {}", label(graph_.topology(), nic));
  spec.whole_message = true;
  spec.units_per_byte = 0;
  spec.units_per_granule = nanoseconds(model.message_cost.value);
  spec.resources.push_back(
      all_.pipeline(fmt::format("{} message pipeline", label(graph_.topology(), nic))));
  const double own = nanoseconds(model.queue_pair_message_cost.value) / drive_.queue_pairs;
  spec.limit = 1e9 * spec.units_per_granule / std::max(own, 1e-3);
  spec.limit_name = fmt::format("{} messages of a queue pair", label(graph_.topology(), nic));
  spec.latency = doorbell(nic, read ? plan_.to_numa : plan_.from_numa);
  if (read) {
    // The request crosses the network before the other side's NIC starts to read.
    const NicModel& responder = hardware_.nic(graph_.device(*plan_.from_nic));
    spec.latency += hardware_.wire_latency() + responder.receive_latency.value;
  }
  const CpuModel& cpu = hardware_.cpu(driver(nic.host, read ? plan_.to_numa : plan_.from_numa));
  // One thread posts; it is busy with each message for so long.
  spec.setup = cpu.post_cost.value;
  if (plan_.transfer.operation == Operation::send) {
    spec.setup += cpu.two_sided_cost.value;
    costs_.cpu_seconds +=
        hardware_.cpu(driver(plan_.transfer.to.host, plan_.to_numa)).two_sided_cost.value.seconds /
        size_.as_double();
  }
  costs_.cpu_seconds += spec.setup.seconds / size_.as_double();
  if (plan_.transfer.initiator != Initiator::cpu) post_by_gpu(spec, nic);
  push(std::move(spec), false);
}

/// A staged chunk is posted by the thread that saw its copy end.
void FlowBuilder::post_after_copy() {
  Duration& latency = flow_.stages.back().latency;
  latency += doorbell(*plan_.from_nic, plan_.from_numa);
  if (plan_.transfer.operation == Operation::send)
    latency +=
        hardware_.cpu(driver(plan_.transfer.from.host, plan_.from_numa)).two_sided_cost.value;
}

void FlowBuilder::add_cpu_copy(const Stage& stage) {
  const CpuModel& cpu = hardware_.cpu(stage.engine);
  const bool out = !nic_read_;
  StageSpec spec;
  spec.name = fmt::format("socket {} on {}", out ? "send" : "receive", graph_.label(stage.engine));
  spec.granule = std::min(tcp_segment, size_);
  spec.setup = cpu.system_call_cost.value + cpu.packet_cost.value;
  const std::size_t memory = all_.resource(fmt::format("{} memory", graph_.label(stage.from)),
                                           hardware_.memory_bandwidth(stage.from), true);
  use(spec, memory, 1);
  use(spec, memory, 1);
  limit(spec, cpu.copy_bandwidth_per_core.value,
        fmt::format("one core's copies on {}", graph_.label(stage.engine)));
  if (out) spec.latency = doorbell(*plan_.from_nic, plan_.from_numa);
  costs_.cpu_seconds += spec.setup.seconds / spec.granule.as_double() +
                        1 / cpu.copy_bandwidth_per_core.value.bytes_per_second;
  (out ? cpu_out_ : cpu_in_) = push(std::move(spec));
}

/// A core copies between pageable memory and the driver's page-locked buffers, chunk by chunk.
void FlowBuilder::add_pageable_copy(const Stage& stage) {
  const CpuModel& cpu = hardware_.cpu(stage.engine);
  StageSpec spec;
  spec.name = fmt::format("copy by {}", graph_.label(stage.engine));
  spec.granule = chunk_;
  const std::size_t memory = all_.resource(fmt::format("{} memory", graph_.label(stage.from)),
                                           hardware_.memory_bandwidth(stage.from), true);
  use(spec, memory, 1);
  use(spec, memory, 1);
  limit(spec, cpu.copy_bandwidth_per_core.value,
        fmt::format("one core's copies on {}", graph_.label(stage.engine)));
  costs_.cpu_seconds += 1 / cpu.copy_bandwidth_per_core.value.bytes_per_second;
  push(std::move(spec));
}

void FlowBuilder::add_nic_read(const Stage& stage) {
  StageSpec spec;
  spec.name = fmt::format("{} reads {}", graph_.label(stage.engine), graph_.label(stage.from));
  spec.granule = nic_granule();
  dma(spec, stage);
  nic_read_ = push(std::move(spec));
}

void FlowBuilder::add_wire(const Stage& stage) {
  const FabricModel& fabric = hardware_.fabric();
  StageSpec spec;
  spec.name = "wire";
  spec.granule = nic_granule();
  spec.packet = tcp() ? Bytes{fabric.tcp_mtu.value.count - tcp_ip_headers} : mtu_;
  spec.units_per_packet =
      (tcp() ? fabric.tcp_header.value : fabric.packet_header.value).as_double();
  const double per_byte = 1 + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  for (const VertexId nic : {stage.from, stage.to}) {
    const Device& device = *graph_.device_at(nic);
    const Bandwidth rate = device.port_rate.value_or(hardware_.nic(nic).port_rate.value);
    use(spec,
        all_.resource(
            fmt::format("{} port {}", graph_.label(nic), nic == stage.from ? "out" : "in"), rate,
            false),
        per_byte);
  }
  if (!tcp())
    if (const auto& own = hardware_.nic(stage.from).queue_pair_bandwidth)
      limit(spec, own->value * drive_.queue_pairs,
            fmt::format("{} queue pair", graph_.label(stage.from)));
  spec.latency = hardware_.wire_latency() + hardware_.nic(stage.to).receive_latency.value;
  wire_ = push(std::move(spec));
}

void FlowBuilder::add_nic_write(const Stage& stage, bool last) {
  StageSpec spec;
  spec.name = fmt::format("{} writes {}", graph_.label(stage.engine), graph_.label(stage.to));
  spec.granule = nic_granule();
  dma(spec, stage);
  const CpuModel& cpu = hardware_.cpu(driver(plan_.transfer.to.host, plan_.to_numa));
  if (tcp()) {
    spec.latency += cpu.interrupt_latency.value;
  } else if (!last || plan_.transfer.operation == Operation::send) {
    // A receiver that must act on the data (a staging copy, a posted receive) sees its completion,
    // written behind the data.
    spec.latency = std::max(spec.latency,
                            completion_write(stage.engine, plan_.transfer.to.host, plan_.to_numa));
    if (plan_.transfer.operation == Operation::send) spec.latency += cpu.two_sided_cost.value;
  }
  nic_write_ = push(std::move(spec));
}

void FlowBuilder::add_windows() {
  const std::size_t last = flow_.stages.size() - 1;
  flow_.completion_stage = last;
  Duration& completion = flow_.completion_latency;
  if (!wire_) {
    if (plan_.stages.back().mover == Mover::copy_engine)
      completion = hardware_.gpu(plan_.stages.back().engine).copy_completion_latency.value;
  } else if (plan_.transfer.operation == Operation::read && !tcp()) {
    completion =
        completion_write(graph_.device(*plan_.to_nic), plan_.transfer.to.host, plan_.to_numa) +
        completion_to_gpu(*plan_.to_nic);
  } else if (tcp()) {
    flow_.completion_stage = *cpu_out_;  // a send returns when the kernel has the bytes
  } else {
    flow_.completion_stage = *wire_;
    completion = hardware_.nic(graph_.device(*plan_.to_nic)).acknowledge_latency.value +
                 hardware_.wire_latency() +
                 hardware_.nic(graph_.device(*plan_.from_nic)).acknowledge_latency.value +
                 completion_write(graph_.device(*plan_.from_nic), plan_.transfer.from.host,
                                  plan_.from_numa) +
                 completion_to_gpu(*plan_.from_nic);
  }
  const auto window = [&](std::string name, std::size_t first, std::size_t to, Bytes limit,
                          Duration back) {
    flow_.windows.push_back({std::move(name), first, to, limit, back, 0, {}});
  };
  const auto depth =
      static_cast<std::uint64_t>(drive_.depth) * static_cast<std::uint64_t>(drive_.queue_pairs);
  const std::size_t completed = tcp() ? last : flow_.completion_stage;
  window(fmt::format("queue depth {}", depth), 0, completed, size_ * depth,
         tcp() ? Duration{} : completion);
  // Depth counts messages: a stage that starts chunk by chunk must not go on in the next message
  // when a chunk of this one is through. (A message alone has no next one.)
  if (drive_.completion_every > 1 || (drive_.messages != 1 && !flow_.stages.front().whole_message))
    flow_.windows.back().quantum =
        size_ * std::min(depth, static_cast<std::uint64_t>(drive_.completion_every));
  // A chunk has a buffer of its own; messages below the size of a buffer share it.
  const auto ring = [&](std::size_t first, std::size_t to, Duration back) {
    window("bounce buffers", first, to,
           std::max(chunk_, buffer_) * static_cast<std::uint64_t>(chunks_), back);
    if (size_ >= buffer_ && flow_.stages[first].granule == chunk_)
      flow_.windows.back().pieces = static_cast<std::uint64_t>(chunks_);
  };
  if (!wire_) {
    if (staged() || plan_.transfer.pageable) ring(0, last, completion);
    return;
  }
  const NicModel& sender = hardware_.nic(graph_.device(*plan_.from_nic));
  const Bytes granule = nic_granule();
  window("NIC buffer", nic_read_.value_or(*wire_), *wire_,
         std::max(sender.outstanding_reads.value * 4, granule * 8), {});
  if (tcp()) {
    window("socket buffers", *cpu_out_, *cpu_in_, tcp_window, hardware_.wire_latency());
  } else {
    window("queue pair window", *wire_, *nic_write_,
           std::max(sender.queue_pair_window.value * static_cast<std::uint64_t>(drive_.queue_pairs),
                    granule * 2),
           completion);
    if (plan_.transfer.operation == Operation::read)
      window("outstanding RDMA reads", 0, last,
             size_ * static_cast<std::uint64_t>(sender.max_read_atomic.value * drive_.queue_pairs),
             {});
  }
  if (!staged()) return;
  ring(0, tcp() ? *cpu_out_ : *wire_, tcp() ? Duration{} : completion);
  ring(tcp() ? *cpu_in_ : *nic_read_, last, hardware_.wire_latency());
}

void FlowBuilder::add_costs() {
  costs_.host_memory_passes = host_memory_passes(plan_, graph_);
  const VertexId memory = graph_.memory(plan_.transfer.from.host, plan_.from_numa);
  const bool bounce = staged() || tcp();
  const bool cached = bounce && hardware_.cpu(memory).cache_absorbs_dma.value &&
                      chunk_.count * static_cast<std::uint64_t>(chunks_) <= cache_share;
  costs_.dram_bytes = cached ? 0 : costs_.host_memory_passes;
  all_.costs_.push_back(costs_);
}

void FlowBuilder::build() {
  flow_.name = fmt::format("{} {} to {}", to_string(plan_.transfer.path),
                           from_label(graph_, plan_.transfer), to_label(graph_, plan_.transfer));
  flow_.message = size_;
  flow_.messages = drive_.messages;
  flow_.start = drive_.start;
  for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
    const Stage& stage = plan_.stages[i];
    plan_stage_ = i;
    const bool last = i + 1 == plan_.stages.size();
    switch (stage.mover) {
      case Mover::copy_engine:
        add_copy(stage, last);
        break;
      case Mover::cpu_copy:
        if (plan_.transfer.pageable) add_pageable_copy(stage);
        else add_cpu_copy(stage);
        break;
      case Mover::nic_read:
        // A staged transfer posts each chunk when its copy is done, so the post is part of that
        // copy's latency.
        if (i == 0) add_post();
        else if (!tcp()) post_after_copy();
        add_nic_read(stage);
        break;
      case Mover::wire:
        if (i == 0) add_post();  // the payload is in the work request
        add_wire(stage);
        break;
      case Mover::nic_write:
        add_nic_write(stage, last);
        break;
      case Mover::device_dma:
        add_device_dma(stage);
        break;
      case Mover::gpu_thread:
        add_gpu_thread(stage);
        break;
    }
  }
  add_windows();
  add_costs();
  all_.flows_.push_back(std::move(flow_));
}

}  // namespace gdr::sim
