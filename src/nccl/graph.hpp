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

/// A node as NCCL has it: a NUMA node ("cpu"), a PCIe switch, a GPU, a NIC with its nets, all
/// NVSwitches together.
struct Node {
  NodeKind kind = NodeKind::pci;
  std::size_t device = 0;     ///< index in the host's devices; of a cpu in its NUMA nodes
  std::size_t parent = 0;     ///< the node above in the PCIe tree; of a cpu itself
  std::vector<Link> links;    ///< in NCCL's order, which decides between equal paths
  std::uint64_t pci_ids = 0;  ///< of a switch: vendor, device and the subsystem's, 16 bits each
  bool removed = false;       ///< melted into the switch above
  int dev = 0;                ///< GPU, net
  int rank = 0;               ///< GPU
  int sm = 0;                 ///< GPU: compute capability, 0 unknown
  bool gdr = false;           ///< GPU, net
  std::string name;           ///< net
  float net_bandwidth = 0;    ///< net: GB/s
  CpuArch arch = CpuArch::unknown;
  CpuVendor vendor = CpuVendor::unknown;
  float between_cpus = 0;  ///< cpu: GB/s to another
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<std::size_t> cpus, gpus, nets;  ///< indices in nodes, in NCCL's order
};

/// The graph that NCCL makes of a host. Where a file leaves GPUs and NICs to detection, those of
/// the topology are taken. xGMI links are left out, since NCCL does not know them. Throws
/// InputError when the host has more nodes than NCCL takes.
Graph build_graph(const Topology& topology, std::size_t host, const ModelLibrary* models,
                  const Rules& rules);

}  // namespace gdr::nccl
