#pragma once

#include <string>

namespace gdr::transport {

/// Queue pairs, regions, completion queues and so on of this host's RDMA devices, a line a device,
/// as `rdma resource show` counts them.
std::string resources_here();
/// The same of the host at the other end.
std::string resources_there();
/// Waits up to two seconds until they are `wanted`; a kernel takes its time over a process that was
/// killed. What they are then.
std::string resources_after(const std::string& wanted);

}  // namespace gdr::transport
