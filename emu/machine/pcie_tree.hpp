#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "emu/machine/gpu_memory.hpp"
#include "src/topology/topology.hpp"

namespace gdr::emu {

/// A function's place as the guest finds it: 8 * physical slot number of the port above + function
/// number. The port itself has the place of function 0.
using PciPlace = std::size_t;

/// A root bus of the guest.
struct RootBus {
  std::string bridge;  ///< the topology's host bridge; empty if it exists only for the device below
  std::size_t numa = 0;  ///< index in the host
  PciPlace first_port =
      0;  ///< the first device on the bus, by which the kernel identifies the bridge; 0: no device
};

/// A host's PCIe tree as arguments of QEMU.
struct PcieTree {
  /// Option, value, option, value... Devices are named as in the topology, the port above one
  /// NAME.port. NICs expect a netdev of their name.
  std::vector<std::string> arguments;
  std::vector<PciPlace> places;  ///< of the host's devices; 0 for host bridges
  std::vector<RootBus> roots;
  std::size_t buses = 0;  ///< number of PCI buses, bus 0 included
};

/// The file behind a GPU's memory.
using GpuFile = std::function<std::string(const Device& gpu)>;

/// A host bridge becomes a pxb-pcie with the NUMA node, its ports pcie-root-port; a switch
/// x3130-upstream and xio3130-downstream; a GPU ivshmem-plain; a NIC virtio-net-pci; a drive nvme
/// without a medium; NVSwitches and others pvpanic-pci, the smallest function QEMU has. A device
/// right below a NUMA node gets a host bridge of its own. `host` is the index in the topology.
/// Throws InputError that gives the reason when QEMU cannot hold the tree.
PcieTree pcie_tree(const Host& host, std::size_t host_index, const std::vector<GpuMemory>& gpus,
                   const GpuFile& gpu_file);

}  // namespace gdr::emu
