#pragma once

#include "src/import/captured_files.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// What /sys and /proc say of a machine's PCI tree, NUMA nodes, processor, RDMA devices and
/// software.
Machine read_sysfs(const CapturedFiles& files);

}  // namespace gdr::observed
