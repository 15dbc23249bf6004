#pragma once

#include "src/import/captured_files.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads a machine's PCI tree, NUMA nodes, processor, RDMA devices and software from /sys and
/// /proc.
Machine read_sysfs(const CapturedFiles& files);

}  // namespace gdr::observed
