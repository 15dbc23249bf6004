#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

// One function for each mover: what it works on (resources, and units on them for each byte), what
// limits it alone, how long a piece is under way. They are called in the order of the plan's
// stages, `flow.flow` holds what was made before, and what a stage costs is added to `flow.costs`.

StageSpec time_copy_engine(FlowContext& flow, const Stage& stage);
StageSpec time_nic_read(FlowContext& flow, const Stage& stage);
StageSpec time_wire(FlowContext& flow, const Stage& stage);
StageSpec time_nic_write(FlowContext& flow, const Stage& stage);
StageSpec time_socket_copy(FlowContext& flow, const Stage& stage);
StageSpec time_cpu_copy(FlowContext& flow, const Stage& stage);
StageSpec time_device_dma(FlowContext& flow, const Stage& stage);
StageSpec time_gpu_thread(FlowContext& flow, const Stage& stage);
/// The one of these that the stage's mover asks for.
StageSpec time_stage(FlowContext& flow, const Stage& stage);

// What someone does to start a stage, as a stage of its own before it.

/// The CPU calls a copy: it costs the calling thread its time, and the engine starts a little
/// later.
StageSpec time_launch(FlowContext& flow, const Stage& copy);
/// A drive takes a command for each message or staging buffer: so many a second, each a latency
/// away from its first byte. A NIC's engine starts on a descriptor.
StageSpec time_command(FlowContext& flow, const Stage& dma);

}  // namespace gdr::sim
