#pragma once

#include <string>

#include "topology/graph.hpp"

namespace gdr {

/// NCCL's word for the way between two devices of a host: NVL, PIX, PXB, PHB (one NUMA node), SYS. The only place that says it.
std::string nccl_distance(const Graph& graph, DeviceId a, DeviceId b);

}  // namespace gdr
