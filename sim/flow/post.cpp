#include "sim/flow/post.hpp"

#include <algorithm>

namespace gdr::sim {
namespace {

/// The GPU of the transfer on the NIC's host.
DeviceId gpu_beside(const TransferPlan& plan, DeviceId nic) {
  return plan.transfer.from.host == nic.host ? plan.transfer.from : plan.transfer.to;
}

Duration stores(const Hardware& hardware, VertexId gpu) {
  const auto& latency = hardware.gpu(gpu).store_latency;
  return latency ? latency->value : Duration{};
}

Duration one_way(const FlowContext& flow, VertexId from, VertexId to) {
  return flow.hardware.one_way(*flow.graph().local_route(from, to));
}

/// The post starts on the GPU. Alone, it writes the work request to its own memory, then the
/// doorbell to the NIC, which fetches the request from there. With a proxy, it sets a flag in host
/// memory; a thread there polls and posts.
void post_by_gpu(FlowContext& flow, StageSpec& spec, DeviceId nic, std::size_t numa) {
  const Hardware& hardware = flow.hardware;
  const VertexId gpu = flow.graph().device(gpu_beside(flow.plan, nic));
  const VertexId to = flow.graph().device(nic);
  if (flow.plan.transfer.initiator == Initiator::proxy) {
    const VertexId memory = flow.graph().memory(nic.host, numa);
    spec.latency += stores(hardware, gpu) + one_way(flow, gpu, memory) +
                    hardware.write_latency(memory) +
                    hardware.cpu(memory).completion_poll_latency.value;
    return;
  }
  const GpuModel& model = hardware.gpu(gpu);
  spec.step = {.kind = StepKind::gpu_post, .by = gpu, .to = to};
  flow.costs.cpu_seconds -= spec.setup.seconds / flow.size().as_double();
  // Each queue pair has a thread of its own, which is busy with each message for this time.
  const Duration post = model.post_cost ? model.post_cost->value : Duration{};
  spec.setup = post * (1.0 / flow.drive.queue_pairs);
  spec.latency = spec.latency + post - spec.setup;
  spec.latency = spec.latency - doorbell(flow, nic, numa);
  const Duration way = one_way(flow, gpu, to);
  spec.latency += stores(hardware, gpu) + way + hardware.nic(to).send_latency.value;
  // The work request is in GPU memory: the NIC reads it there.
  spec.latency += way * 2 + model.bar_read_latency.value;
}

}  // namespace

Duration doorbell(const FlowContext& flow, DeviceId nic, std::size_t numa) {
  const Hardware& hardware = flow.hardware;
  const VertexId to = flow.graph().device(nic);
  const VertexId socket = flow.driver(nic.host, numa);
  const NicModel& model = hardware.nic(to);
  Duration time = hardware.cpu(socket).mmio_write_latency.value + one_way(flow, socket, to) +
                  model.send_latency.value;
  const bool pushed = model.blueflame.value && flow.plan.transfer.push_request.value_or(true);
  if (!pushed && model.wqe_fetch.value)
    time += one_way(flow, to, flow.graph().memory(nic.host, numa)) * 2 +
            hardware.cpu(socket).memory_latency.value;
  return time;
}

Duration completion_write(const FlowContext& flow, VertexId nic, std::size_t host,
                          std::size_t numa) {
  const VertexId memory = flow.graph().memory(host, numa);
  return one_way(flow, nic, memory) + flow.hardware.write_latency(memory) +
         flow.hardware.cpu(memory).completion_poll_latency.value;
}

StageSpec time_post(FlowContext& flow) {
  const TransferPlan& plan = flow.plan;
  const bool read = plan.transfer.operation == Operation::read;
  const DeviceId nic = read ? *plan.to_nic : *plan.from_nic;
  const std::size_t numa = read ? plan.to_numa : plan.from_numa;
  const VertexId at = flow.graph().device(nic);
  const NicModel& model = flow.hardware.nic(at);
  StageSpec spec{.step = {.kind = StepKind::post, .to = at},
                 .whole_message = true,
                 .units_per_byte = 0,
                 .units_per_granule = nanoseconds(model.message_cost.value)};
  spec.resources.push_back(flow.resources.pipeline({ResourceKind::messages, at}));
  const double own = nanoseconds(model.queue_pair_message_cost.value) / flow.drive.queue_pairs;
  spec.limit = 1e9 * spec.units_per_granule / std::max(own, 1e-3);
  spec.limited_by = {.kind = LimitKind::queue_pair_messages, .at = at};
  spec.latency = doorbell(flow, nic, numa);
  if (read) {
    // The request crosses the network before the other side's NIC starts to read.
    const NicModel& responder = flow.hardware.nic(flow.graph().device(*plan.from_nic));
    spec.latency += flow.hardware.wire_latency() + responder.receive_latency.value;
  }
  const CpuModel& cpu = flow.hardware.cpu(flow.driver(nic.host, numa));
  // One thread posts; it is busy with each message for this time.
  spec.setup = cpu.post_cost.value;
  if (plan.transfer.operation == Operation::send) {
    const CpuModel& receiver = flow.hardware.cpu(flow.driver(plan.transfer.to.host, plan.to_numa));
    spec.setup += cpu.two_sided_cost.value;
    flow.costs.cpu_seconds += receiver.two_sided_cost.value.seconds / flow.size().as_double();
  }
  flow.costs.cpu_seconds += spec.setup.seconds / flow.size().as_double();
  if (plan.transfer.initiator != Initiator::cpu) post_by_gpu(flow, spec, nic, numa);
  return spec;
}

Duration post_after_copy(const FlowContext& flow) {
  const TransferPlan& plan = flow.plan;
  Duration time = doorbell(flow, *plan.from_nic, plan.from_numa);
  if (plan.transfer.operation == Operation::send)
    time += flow.hardware.cpu(flow.driver(plan.transfer.from.host, plan.from_numa))
                .two_sided_cost.value;
  return time;
}

Duration completion_of(const FlowContext& flow, DeviceId nic, std::size_t host, std::size_t numa) {
  const Hardware& hardware = flow.hardware;
  const VertexId at = flow.graph().device(nic);
  const Duration to_host = completion_write(flow, at, host, numa);
  if (flow.plan.transfer.initiator == Initiator::cpu) return to_host;
  const VertexId gpu = flow.graph().device(gpu_beside(flow.plan, nic));
  // The completion queue is in GPU memory, too: the thread polls its own memory.
  if (flow.plan.transfer.initiator == Initiator::gpu)
    return one_way(flow, at, gpu) + hardware.gpu(gpu).bar_write_latency.value +
           stores(hardware, gpu);
  // The proxy's thread passes it on through host memory.
  const VertexId memory = flow.graph().memory(host, numa);
  return to_host + one_way(flow, gpu, memory) * 2 + hardware.cpu(memory).memory_latency.value +
         stores(hardware, gpu);
}

}  // namespace gdr::sim
