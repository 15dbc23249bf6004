#include "sim/flow/movers/movers.hpp"

namespace gdr::sim {

/// There are enough threads to fill the link; only the window bounds them.
StageSpec time_gpu_thread(FlowContext& flow, const Stage& stage) {
  StageSpec spec{
      .step = {stage.reads ? StepKind::load : StepKind::store, stage.engine, stage.from, stage.to},
      .granule = piece_of(flow, stage)};
  work_on_hops(flow, spec, stage);
  if (const auto& store = flow.hardware.gpu(stage.engine).store_latency)
    spec.latency += store->value;
  return spec;
}

}  // namespace gdr::sim
