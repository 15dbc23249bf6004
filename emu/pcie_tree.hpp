#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "emu/gpu_memory.hpp"
#include "topology/topology.hpp"

namespace gdr::emu {

/// A host's PCIe tree in QEMU's words.
struct PcieTree {
  /// Option, value, option, value... Devices are named as in the topology, the port above one NAME.port. NICs expect a netdev
  /// of their name.
  std::vector<std::string> arguments;
  /// Where each GPU is, as gdr_fakegpu's parameter `places` takes it: GPU N is at places[N] (0 for a number that is not used).
  std::vector<std::size_t> gpu_places;
  std::size_t buses = 0;  ///< PCI buses that the tree takes, bus 0 included
};

/// The file behind a GPU's memory.
using GpuFile = std::function<std::string(const Device& gpu)>;

/// A host bridge becomes a pxb-pcie with the NUMA node, its ports pcie-root-port; a switch x3130-upstream and xio3130-downstream;
/// a GPU ivshmem-plain; a NIC virtio-net-pci; a drive nvme without a medium; NVSwitches and others pvpanic-pci, the smallest
/// function QEMU has. A device right below a NUMA node gets a host bridge of its own. `host` is the index in the topology. Throws
/// InputError that gives the reason when QEMU cannot hold the tree.
PcieTree pcie_tree(const Host& host, std::size_t host_index, const std::vector<GpuMemory>& gpus, const GpuFile& gpu_file);

}  // namespace gdr::emu
