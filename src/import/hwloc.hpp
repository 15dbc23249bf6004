#pragma once

#include <string>

#include "src/common/xml_tree.hpp"
#include "src/import/observed.hpp"

namespace gdr::observed {

/// hwloc's XML (lstopo file.xml) of versions 1, 2 and 3: bridges, PCI devices, their network and
/// RDMA devices, NUMA nodes, packages, processor. Link speeds are left out: hwloc writes a
/// bandwidth of the moment, which several links have. Throws InputError when it has no PCI device
/// at all.
Machine read_hwloc(const xml::Element& root, const std::string& name);

}  // namespace gdr::observed
