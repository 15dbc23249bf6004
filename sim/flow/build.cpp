#include "sim/flow/build.hpp"

#include <algorithm>

#include "sim/flow/flow_windows.hpp"
#include "sim/flow/movers/movers.hpp"
#include "sim/flow/post.hpp"
#include "src/common/check.hpp"

namespace gdr::sim {

StageSpec time_stage(FlowContext& flow, const Stage& stage) {
  switch (stage.mover) {
    case Mover::copy_engine:
      return time_copy_engine(flow, stage);
    case Mover::nic_read:
      return time_nic_read(flow, stage);
    case Mover::wire:
      return time_wire(flow, stage);
    case Mover::nic_write:
      return time_nic_write(flow, stage);
    case Mover::socket_copy:
      return time_socket_copy(flow, stage);
    case Mover::cpu_copy:
      return time_cpu_copy(flow, stage);
    case Mover::device_dma:
      return time_device_dma(flow, stage);
    case Mover::gpu_thread:
      return time_gpu_thread(flow, stage);
  }
  return {};
}

namespace {

/// Adds what has to happen before a stage can start. The kernel's sockets and what follows a wire
/// need nothing; a message is posted once; the thread that saw a copy end posts its staging buffer,
/// as part of that copy's latency.
void start(FlowContext& flow, std::size_t index) {
  const Stage& stage = flow.plan.stages[index];
  const bool by_nic = stage.mover == Mover::nic_read || stage.mover == Mover::wire;
  if (stage.mover == Mover::copy_engine) {
    flow.flow.stages.push_back(time_launch(flow, stage));
  } else if (stage.mover == Mover::device_dma) {
    flow.flow.stages.push_back(time_command(flow, stage));
  } else if (by_nic && index == 0) {
    flow.flow.stages.push_back(time_post(flow));
  } else if (stage.mover == Mover::nic_read && stage.protocol == Protocol::rdma) {
    const Duration post = post_after_copy(flow);
    flow.flow.stages.back().latency += post;
  }
}

/// What goes through staging buffers that stay in the last-level cache causes no DRAM traffic. A
/// program's own pageable memory is not in the cache.
bool stays_in_cache(const FlowContext& flow) {
  const TransferPlan& plan = flow.plan;
  const VertexId memory = flow.graph().memory(plan.transfer.from.host, plan.from_numa);
  const auto moves = [&](Mover mover) {
    return std::any_of(plan.stages.begin(), plan.stages.end(),
                       [&](const Stage& stage) { return stage.mover == mover; });
  };
  if (!flow.hardware.cpu(memory).cache_absorbs_dma.value || moves(Mover::cpu_copy)) return false;
  const auto fits = [&](const Ring& ring) {
    const Bytes share = plan.stages[ring.first].buffer.value_or(ring.size);
    return share * ring.count <= flow.hardware.dma_cache();
  };
  return std::all_of(plan.rings.begin(), plan.rings.end(), fits) &&
         (!plan.rings.empty() || moves(Mover::socket_copy));
}

}  // namespace

void ScenarioBuilder::add(const TransferPlan& plan, const Drive& drive) {
  check(drive.depth > 0 && drive.queue_pairs > 0, "a transfer without depth or queue pairs");
  // Ranges also vary the models that the planner asked for.
  for (const std::string& name : plan.software) (void)hardware_->software(name);
  FlowContext flow{
      .hardware = *hardware_,
      .plan = plan,
      .drive = drive,
      .resources = resources_,
      .number = flows_.size(),
      .flow = {.message = plan.transfer.size, .messages = drive.messages, .start = drive.start}};
  for (std::size_t i = 0; i < plan.stages.size(); ++i) {
    start(flow, i);
    StageSpec spec = time_stage(flow, plan.stages[i]);
    spec.plan_stage = i;
    flow.flow.stages.push_back(std::move(spec));
  }
  add_windows(flow);
  flow.costs.host_memory_passes = host_memory_passes(plan, hardware_->graph());
  flow.costs.dram_bytes = stays_in_cache(flow) ? 0 : flow.costs.host_memory_passes;
  costs_.push_back(flow.costs);
  flows_.push_back(std::move(flow.flow));
}

Scenario ScenarioBuilder::take() {
  resources_.limit_fan_out(flows_);
  return {.resources = resources_.take(), .flows = std::move(flows_)};
}

}  // namespace gdr::sim
