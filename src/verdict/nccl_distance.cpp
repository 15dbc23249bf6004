#include "verdict/nccl_distance.hpp"

#include "topology/distance.hpp"

namespace gdr {

std::string nccl_distance(const Graph& graph, DeviceId a, DeviceId b) {
  if (nvlink_count(graph, a, b) > 0) return "NVL";
  switch (pcie_distance(graph, a, b)) {
    case Distance::self:
      return "LOC";
    case Distance::pix:
      return "PIX";
    case Distance::pxb:
      return "PXB";
    case Distance::phb:
    case Distance::phb_or_node:
    case Distance::node:
      return "PHB";  // NCCL's CPU is a NUMA node, whatever host bridges it has
    case Distance::sys:
      return "SYS";
    case Distance::none:
      break;
  }
  return "DIS";
}

}  // namespace gdr
