#pragma once

#include <string>

namespace gdr::transport {

/// Queue pairs, regions, completion queues and so on of this host's RDMA devices, one line per
/// device, as `rdma resource show` counts them.
std::string resources_here();
/// The same for the host at the other end.
std::string resources_there();
/// Waits up to two seconds until they are `wanted`, since the kernel takes time to clean up a
/// killed process. Returns what they are then.
std::string resources_after(const std::string& wanted);

}  // namespace gdr::transport
