#include <algorithm>

#include "sim/flow/movers/movers.hpp"
#include "sim/flow/post.hpp"

namespace gdr::sim {

StageSpec time_nic_read(FlowContext& flow, const Stage& stage) {
  StageSpec spec{.step = {StepKind::dma_read, stage.engine, stage.from, stage.to},
                 .granule = piece_of(flow, stage)};
  work_by_dma(flow, spec, stage);
  return spec;
}

StageSpec time_nic_write(FlowContext& flow, const Stage& stage) {
  StageSpec spec{.step = {StepKind::dma_write, stage.engine, stage.from, stage.to},
                 .granule = piece_of(flow, stage)};
  work_by_dma(flow, spec, stage);
  if (!stage.awaited) return spec;
  const TransferPlan& plan = flow.plan;
  const CpuModel& cpu = flow.hardware.cpu(flow.driver(plan.transfer.to.host, plan.to_numa));
  if (stage.protocol == Protocol::tcp) {
    spec.latency += cpu.interrupt_latency.value;
    return spec;
  }
  // A receiver that must act on the data (a staging copy, a posted receive) waits for a completion,
  // which is written after the data.
  spec.latency = std::max(
      spec.latency, completion_write(flow, stage.engine, plan.transfer.to.host, plan.to_numa));
  if (plan.transfer.operation == Operation::send) spec.latency += cpu.two_sided_cost.value;
  return spec;
}

}  // namespace gdr::sim
