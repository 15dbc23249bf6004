#include "sim/flow/movers/movers.hpp"
#include "sim/flow/post.hpp"

namespace gdr::sim {
namespace {

/// A core reads every byte from a memory and writes it back there.
StageSpec copy_in_memory(FlowContext& flow, const Stage& stage, StepKind kind) {
  const Bandwidth per_core = flow.hardware.cpu(stage.engine).copy_bandwidth_per_core.value;
  StageSpec spec{.step = {kind, stage.engine, stage.from, stage.to},
                 .granule = piece_of(flow, stage)};
  for (const VertexId memory : {stage.from, stage.to})
    use(flow, spec,
        flow.resources.number({ResourceKind::memory, memory},
                              flow.hardware.memory_bandwidth(memory), true),
        1);
  limit(flow, spec, per_core, {.kind = LimitKind::core_copies, .at = stage.engine});
  flow.costs.cpu_seconds += 1 / per_core.bytes_per_second;
  return spec;
}

}  // namespace

StageSpec time_cpu_copy(FlowContext& flow, const Stage& stage) {
  return copy_in_memory(flow, stage, StepKind::core_copy);
}

StageSpec time_socket_copy(FlowContext& flow, const Stage& stage) {
  const CpuModel& cpu = flow.hardware.cpu(stage.engine);
  const bool sends = flow.graph().vertex(stage.from).host == flow.plan.transfer.from.host;
  StageSpec spec =
      copy_in_memory(flow, stage, sends ? StepKind::socket_send : StepKind::socket_receive);
  spec.setup = cpu.system_call_cost.value + cpu.packet_cost.value;
  flow.costs.cpu_seconds += spec.setup.seconds / spec.granule.as_double();
  if (sends) spec.latency = doorbell(flow, *flow.plan.from_nic, flow.plan.from_numa);
  return spec;
}

}  // namespace gdr::sim
