#pragma once

#include <string>

#include "sim/flow/ids.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::sim {

/// The words for what the simulator names by ids: "h0/gpu0 link up", "h0/nic0 read window
/// 64KiB/980ns", "queue depth 128", "command to h0/nvme0". Empty for nothing.
std::string name(const Hardware& hardware, const Bottleneck& what);

}  // namespace gdr::sim
