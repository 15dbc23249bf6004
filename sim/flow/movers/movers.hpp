#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

// One function for each mover: which resources it uses with how many units per byte, what limits it
// alone, and its latency. They are called in the order of the plan's stages: `flow.flow` holds the
// stages made before, and each adds its costs to `flow.costs`.

StageSpec time_copy_engine(FlowContext& flow, const Stage& stage);
StageSpec time_nic_read(FlowContext& flow, const Stage& stage);
StageSpec time_wire(FlowContext& flow, const Stage& stage);
StageSpec time_nic_write(FlowContext& flow, const Stage& stage);
StageSpec time_socket_copy(FlowContext& flow, const Stage& stage);
StageSpec time_cpu_copy(FlowContext& flow, const Stage& stage);
StageSpec time_device_dma(FlowContext& flow, const Stage& stage);
StageSpec time_gpu_thread(FlowContext& flow, const Stage& stage);
/// Calls the one for the stage's mover.
StageSpec time_stage(FlowContext& flow, const Stage& stage);

// What starts a stage, as a stage of its own before it.

/// The CPU calls a copy: the call takes time of its thread, and the engine starts a little later.
StageSpec time_launch(FlowContext& flow, const Stage& copy);
/// A drive takes one command per message or staging buffer, at most its IOPS, each with a latency
/// before its first byte. A NIC's engine starts on a descriptor.
StageSpec time_command(FlowContext& flow, const Stage& dma);

}  // namespace gdr::sim
