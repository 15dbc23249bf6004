#include <algorithm>

#include "sim/flow/movers/movers.hpp"

namespace gdr::sim {

StageSpec time_launch(FlowContext& flow, const Stage& copy) {
  const GpuModel& gpu = flow.hardware.gpu(copy.engine);
  const Duration call = gpu.copy_call_cost.value;
  flow.costs.cpu_seconds += call.seconds / copy.piece.as_double();
  return {.step = {.kind = StepKind::launch, .by = copy.engine},
          .granule = copy.piece,
          .units_per_byte = 0,
          .setup = call,
          .latency = Duration{std::max(0.0, gpu.copy_launch_latency.value.seconds - call.seconds)}};
}

StageSpec time_copy_engine(FlowContext& flow, const Stage& stage) {
  const GpuModel& gpu = flow.hardware.gpu(stage.engine);
  StageSpec spec{.step = {StepKind::engine_copy, stage.engine, stage.from, stage.to},
                 .granule = stage.piece};
  work_on_hops(flow, spec, stage);
  // Over NVLink copies are spread over engines and limited by the links and the memory;
  // copy_bandwidth is an engine's PCIe rate.
  const bool by_pcie = std::any_of(stage.data.begin(), stage.data.end(),
                                   [](const Hop& hop) { return hop.kind == HopKind::pcie; });
  if (by_pcie) {
    const Bandwidth all = gpu.copy_bandwidth.value * static_cast<double>(gpu.copy_engines.value);
    use(flow, spec, flow.resources.number({ResourceKind::copy_engines, stage.engine}, all, true),
        units_per_byte(flow, spec));
    limit(flow, spec, gpu.copy_bandwidth.value,
          {.kind = LimitKind::copy_engine, .at = stage.engine});
  }
  // The waiting thread learns of the end only after the last byte is visible.
  if (stage.awaited) spec.latency += gpu.copy_completion_latency.value;
  return spec;
}

}  // namespace gdr::sim
