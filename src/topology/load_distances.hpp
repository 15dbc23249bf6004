#pragma once

#include "src/common/json_reader.hpp"
#include "src/topology/topology.hpp"

namespace gdr {

// Parts of a host in a topology file that tools stated and no tree says; used by the loader
// (load.cpp).

/// {"from", "to", "distance"} of two devices of `host`, which has its devices already. Throws
/// InputError.
StatedDistance read_stated_distance(const json::Node& node, const Host& host);
/// {"rule", "severity", "where", "message", "remedy"}. Throws InputError.
Remark read_remark(const json::Node& node);
/// Throws InputError where a device without a known place does not hang below a NUMA node, or a
/// pair is stated twice.
void check_stated(const Host& host, const json::Node& node);

}  // namespace gdr
