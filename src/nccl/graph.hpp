#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/nccl/rules.hpp"
#include "src/topology/topology.hpp"

namespace gdr {
class ModelLibrary;
}

namespace gdr::nccl {

enum class NodeKind { cpu, pci, gpu, nic, net, nvswitch };
enum class LinkType { loc, nvl, c2c, pci, sys, net };

struct Link {
  LinkType type = LinkType::loc;
  float gigabytes_per_second = 0;
  std::size_t to = 0;  ///< index in Graph::nodes
};

enum class CpuVendor { unknown, intel, amd, zhaoxin };
enum class CpuArch { unknown, x86, arm, power };

/// A node of NCCL's graph: a NUMA node ("cpu"), a PCIe switch, a GPU, a NIC with its nets, or all
/// NVSwitches together.
struct Node {
  NodeKind kind = NodeKind::pci;
  std::size_t device = 0;     ///< index in the host's devices; for a cpu in its NUMA nodes
  std::size_t parent = 0;     ///< the node above in the PCIe tree; a cpu is its own
  std::vector<Link> links;    ///< in NCCL's order, which breaks ties between paths
  std::uint64_t pci_ids = 0;  ///< switch: vendor and device of chip and subsystem, 16 bits each
  bool removed = false;       ///< merged into the switch above
  int dev = 0;                ///< GPU, net
  int rank = 0;               ///< GPU
  int sm = 0;                 ///< GPU: compute capability; 0: unknown
  bool gdr = false;           ///< GPU, net
  std::string name;           ///< net
  float net_bandwidth = 0;    ///< net: GB/s
  CpuArch arch = CpuArch::unknown;
  CpuVendor vendor = CpuVendor::unknown;
  float between_cpus = 0;  ///< cpu: GB/s to another cpu
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::size_t> cpus, gpus, nets;  ///< indices in nodes, in NCCL's order
};

/// The graph that NCCL builds of a host. If a file leaves GPUs and NICs to detection, those of the
/// topology are used. xGMI links are omitted, since NCCL does not know them. Throws InputError when
/// the host has more nodes than NCCL allows.
Graph build_graph(const Topology& topology, std::size_t host, const ModelLibrary* models,
                  const Rules& rules);

}  // namespace gdr::nccl
