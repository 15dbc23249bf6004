#pragma once

#include <string>

#include "src/common/xml_tree.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads hwloc's XML (lstopo file.xml), versions 1, 2 and 3: bridges, PCI devices, their network
/// and RDMA devices, NUMA nodes, packages, processor. Link speeds are ignored: hwloc writes the
/// current bandwidth, which different links can have in common. Throws InputError when there is no
/// PCI device.
Machine read_hwloc(const xml::Element& root, const std::string& name);

}  // namespace gdr::observed
