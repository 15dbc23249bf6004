#pragma once

#include <string>

#include "sim/flow/ids.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::report {

/// The names of what the simulator identifies by ids: "h0/gpu0 link up", "h0/nic0 read window
/// 64KiB/980ns", "queue depth 128", "command to h0/nvme0". Empty for nothing.
std::string name(const Hardware& hardware, const sim::Bottleneck& what);

}  // namespace gdr::report
