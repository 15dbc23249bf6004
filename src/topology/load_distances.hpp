#pragma once

#include "src/common/json_reader.hpp"
#include "src/topology/topology.hpp"

namespace gdr {

// The parts of a host in a topology file that tools stated and that its tree does not show. Used by
// load.cpp.

/// {"from", "to", "distance"} of two devices of `host`, whose devices are already loaded. Throws
/// InputError.
StatedDistance read_stated_distance(const json::Node& node, const Host& host);
/// {"rule", "severity", "where", "message", "remedy"}. Throws InputError.
Remark read_remark(const json::Node& node);
/// Throws InputError when a device without a known place is not below a NUMA node, or a pair is
/// stated twice.
void check_stated(const Host& host, const json::Node& node);

}  // namespace gdr
