#include <algorithm>

#include "sim/flow/movers/movers.hpp"

namespace gdr::sim {

StageSpec time_command(FlowContext& flow, const Stage& dma) {
  StageSpec spec{.granule = dma.buffer.value_or(flow.size()),
                 .whole_message = !dma.buffer,
                 .units_per_byte = 0};
  if (flow.graph().vertex(dma.engine).kind != VertexKind::nvme) {
    const NicModel& nic = flow.hardware.nic(dma.engine);
    spec.step = {.kind = StepKind::descriptor, .by = dma.engine};
    spec.units_per_granule = nanoseconds(nic.message_cost.value);
    spec.resources.push_back(flow.resources.pipeline({ResourceKind::messages, dma.engine}));
    spec.latency = nic.send_latency.value;
    return spec;
  }
  const NvmeModel& drive = flow.hardware.nvme(dma.engine);
  const bool reading = !dma.reads;  // the drive reads its medium and writes to memory
  const std::int64_t rate = reading ? drive.read_iops.value : drive.write_iops.value;
  spec.step = {.kind = StepKind::command, .by = dma.engine};
  spec.units_per_granule = 1e9 / static_cast<double>(std::max<std::int64_t>(1, rate));
  spec.resources.push_back(flow.resources.pipeline(
      {ResourceKind::commands, dma.engine, reading ? Direction::reads : Direction::writes}));
  spec.latency = reading ? drive.read_latency.value : drive.write_latency.value;
  return spec;
}

StageSpec time_device_dma(FlowContext& flow, const Stage& stage) {
  StageSpec spec{.step = {stage.reads ? StepKind::dma_read : StepKind::dma_write, stage.engine,
                          stage.from, stage.to},
                 .granule = piece_of(flow, stage)};
  work_by_dma(flow, spec, stage);
  if (flow.graph().vertex(stage.engine).kind == VertexKind::nvme) {
    const NvmeModel& drive = flow.hardware.nvme(stage.engine);
    use(flow, spec,
        flow.resources.number(
            {ResourceKind::medium, stage.engine,
             stage.reads ? Direction::writes : Direction::reads},
            stage.reads ? drive.write_bandwidth.value : drive.read_bandwidth.value, true),
        units_per_byte(flow, spec));
  } else if (const auto& copy = flow.hardware.nic(stage.engine).dma_copy_bandwidth) {
    spec.latency += std::min(spec.granule, flow.size()) / copy->value;
  }
  return spec;
}

}  // namespace gdr::sim
