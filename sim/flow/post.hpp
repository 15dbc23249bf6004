#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

// How the CPU or a GPU gives work to a NIC and learns of its end.

/// From a core's store until the NIC has the work request.
Duration doorbell(const FlowContext& flow, DeviceId nic, std::size_t numa);
/// From a completion leaving the NIC until the polling thread has seen it.
Duration completion_write(const FlowContext& flow, VertexId nic, std::size_t host,
                          std::size_t numa);
/// The stage before the first one: the initiator posts the message.
StageSpec time_post(FlowContext& flow);
/// The time that posting a staging buffer adds to the copy into it: the thread that saw the copy
/// end posts it.
Duration post_after_copy(const FlowContext& flow);
/// From the NIC's completion until the initiator knows of it.
Duration completion_of(const FlowContext& flow, DeviceId nic, std::size_t host, std::size_t numa);

}  // namespace gdr::sim
