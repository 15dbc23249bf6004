#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

// How a NIC gets its work, and how its end becomes known: by the CPU, or by a GPU.

/// From a core's store to the NIC having understood the work request.
Duration doorbell(const FlowContext& flow, DeviceId nic, std::size_t numa);
/// From a NIC's completion leaving it to the polling thread having seen it.
Duration completion_write(const FlowContext& flow, VertexId nic, std::size_t host,
                          std::size_t numa);
/// The stage before the first one: the initiator posts the message.
StageSpec time_post(FlowContext& flow);
/// A thread that saw a copy into a staging buffer end posts the buffer: what that adds to the copy.
Duration post_after_copy(const FlowContext& flow);
/// From the NIC's completion to the initiator knowing.
Duration completion_of(const FlowContext& flow, DeviceId nic, std::size_t host, std::size_t numa);

}  // namespace gdr::sim
