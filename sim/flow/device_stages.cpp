#include <fmt/format.h>

#include <algorithm>

#include "sim/flow/flow_builder.hpp"

// Stages of movers that no CPU thread drives byte by byte: DMA engines of NICs and drives, threads
// of GPUs; and what it takes when a GPU posts a NIC's work.

namespace gdr::sim {
namespace {

double nanoseconds(Duration d) { return d.seconds * 1e9; }

// A transfer of a drive or of GPU threads is cut into so many granules at most: finer ones change
// results by less than a part in this.
constexpr std::uint64_t granules_a_transfer = 64;
// Threads that issue loads and stores are enough to fill the link: what bounds them is the window.
constexpr Bytes least_granule{4096};

Bytes granule_of(Bytes size) {
  Bytes granule = least_granule;
  while (granule.count * granules_a_transfer < size.count) granule = granule * 2;
  return granule;
}

}  // namespace

/// A drive takes a command for each message or bounce buffer: so many a second, each `latency` away
/// from its first byte. A NIC's engine starts on a descriptor.
void FlowBuilder::add_command(const Stage& stage) {
  StageSpec spec;
  // What goes through bounce buffers is a command for each of them: the next one must not wait for
  // the whole message.
  spec.whole_message = !staged();
  spec.granule = chunk_;
  spec.units_per_byte = 0;
  const std::string name = graph_.label(stage.engine);
  if (graph_.vertex(stage.engine).kind == VertexKind::nvme) {
    const NvmeModel& drive = hardware_.nvme(stage.engine);
    const bool reading = !stage.reads;  // of the medium: the drive writes to memory what it read
    spec.name = fmt::format("command to {}", name);
    const std::int64_t rate = reading ? drive.read_iops.value : drive.write_iops.value;
    spec.units_per_granule = 1e9 / static_cast<double>(std::max<std::int64_t>(1, rate));
    spec.resources.push_back(
        all_.pipeline(fmt::format("{} {} commands", name, reading ? "read" : "write")));
    spec.latency = reading ? drive.read_latency.value : drive.write_latency.value;
  } else {
    const NicModel& nic = hardware_.nic(stage.engine);
    spec.name = fmt::format("descriptor on {}", name);
    spec.units_per_granule = nanoseconds(nic.message_cost.value);
    spec.resources.push_back(all_.pipeline(fmt::format("{} message pipeline", name)));
    spec.latency = nic.send_latency.value;
  }
  push(std::move(spec), false);
}

void FlowBuilder::add_device_dma(const Stage& stage) {
  // Behind a bounce buffer, the copy's end is what starts the drive.
  add_command(stage);
  StageSpec spec;
  const bool drive = graph_.vertex(stage.engine).kind == VertexKind::nvme;
  spec.name = fmt::format("{} {} {}", graph_.label(stage.engine), stage.reads ? "reads" : "writes",
                          graph_.label(stage.reads ? stage.from : stage.to));
  spec.granule = staged() ? chunk_ : drive ? granule_of(size_) : std::min(size_, least_granule);
  dma(spec, stage);
  const double per_byte =
      spec.units_per_byte + spec.units_per_packet / std::min(spec.packet, size_).as_double();
  if (drive) {
    const NvmeModel& model = hardware_.nvme(stage.engine);
    use(spec,
        all_.resource(fmt::format("{} {}", graph_.label(stage.engine),
                                  stage.reads ? "writes to its medium" : "reads of its medium"),
                      stage.reads ? model.write_bandwidth.value : model.read_bandwidth.value, true),
        per_byte);
  } else if (const auto& copy = hardware_.nic(stage.engine).dma_copy_bandwidth) {
    spec.latency +=
        Duration{std::min(spec.granule, size_).as_double() / copy->value.bytes_per_second};
  }
  push(std::move(spec));
}

void FlowBuilder::add_gpu_thread(const Stage& stage) {
  StageSpec spec;
  spec.name =
      fmt::format("{} {} {}", graph_.label(stage.engine), stage.reads ? "loads from" : "stores to",
                  graph_.label(stage.reads ? stage.from : stage.to));
  spec.granule = granule_of(size_);
  const bool nvlink = std::any_of(stage.data.begin(), stage.data.end(),
                                  [](const Hop& hop) { return hop.kind == HopKind::nvlink; });
  if (nvlink) over_nvlink(spec, stage);
  else dma(spec, stage);
  if (const auto& store = hardware_.gpu(stage.engine).store_latency) spec.latency += store->value;
  push(std::move(spec));
}

namespace {

/// The GPU of the transfer on the NIC's host.
DeviceId gpu_beside(const TransferPlan& plan, DeviceId nic) {
  return plan.transfer.from.host == nic.host ? plan.transfer.from : plan.transfer.to;
}

Duration stores(const Hardware& hardware, VertexId gpu) {
  const auto& latency = hardware.gpu(gpu).store_latency;
  return latency ? latency->value : Duration{};
}

}  // namespace

/// The post starts on the GPU. Alone, it writes the work request to its own memory, then the
/// doorbell to the NIC, which fetches the request from there. With a proxy, it sets a flag in host
/// memory; a thread there polls and posts.
void FlowBuilder::post_by_gpu(StageSpec& spec, DeviceId nic) {
  const VertexId gpu = graph_.device(gpu_beside(plan_, nic));
  const VertexId to = graph_.device(nic);
  const std::size_t numa = nic == *plan_.from_nic ? plan_.from_numa : plan_.to_numa;
  const VertexId memory = graph_.memory(nic.host, numa);
  if (plan_.transfer.initiator == Initiator::proxy) {
    spec.latency += stores(hardware_, gpu) + hardware_.one_way(*graph_.local_route(gpu, memory)) +
                    hardware_.write_latency(memory) +
                    hardware_.cpu(memory).completion_poll_latency.value;
    return;
  }
  const GpuModel& model = hardware_.gpu(gpu);
  spec.name = fmt::format("post on {} to {}", graph_.label(gpu), graph_.label(to));
  costs_.cpu_seconds -= spec.setup.seconds / size_.as_double();
  // A thread a queue pair posts; each is busy with a message for so long.
  const Duration post = model.post_cost ? model.post_cost->value : Duration{};
  spec.setup = post * (1.0 / drive_.queue_pairs);
  spec.latency = spec.latency + post - spec.setup;
  const Route way = *graph_.local_route(gpu, to);
  spec.latency = spec.latency - doorbell(nic, numa);
  spec.latency +=
      stores(hardware_, gpu) + hardware_.one_way(way) + hardware_.nic(to).send_latency.value;
  // The work request is in GPU memory: the NIC reads it there.
  spec.latency += hardware_.one_way(way) * 2 + model.bar_read_latency.value;
}

/// What the GPU that waits adds to a completion in host memory.
Duration FlowBuilder::completion_to_gpu(DeviceId nic) const {
  if (plan_.transfer.initiator == Initiator::cpu) return {};
  const VertexId gpu = graph_.device(gpu_beside(plan_, nic));
  const std::size_t numa = nic == *plan_.from_nic ? plan_.from_numa : plan_.to_numa;
  const VertexId memory = graph_.memory(nic.host, numa);
  const Duration load = hardware_.one_way(*graph_.local_route(gpu, memory)) * 2 +
                        hardware_.cpu(memory).memory_latency.value;
  if (plan_.transfer.initiator == Initiator::proxy) return load + stores(hardware_, gpu);
  // The completion queue is in GPU memory, too: the write goes there instead, and the thread polls
  // its own memory.
  const Duration to_host = completion_write(graph_.device(nic), nic.host, numa);
  return hardware_.one_way(*graph_.local_route(graph_.device(nic), gpu)) +
         hardware_.gpu(gpu).bar_write_latency.value + stores(hardware_, gpu) - to_host;
}

}  // namespace gdr::sim
