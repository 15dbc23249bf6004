#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// Sets a device's kind, address, ids, link and ports from its stored elements. Import fills a new
/// device; export compares to find what has changed since. Model, name and place in the tree stay
/// as they are.
void read_facts(Device& device);

/// The NVLink, xGMI and C2C links in the elements of a host's devices.
std::vector<NvLink> read_nvlinks(const Host& host);

/// True for a bridge that QEMU or a hypervisor invented, whose link attributes are meaningless.
bool is_virtual_bridge(const NcclElement& pci);

/// True for a GPU inside a processor, which reports a link that does not exist.
bool is_integrated_gpu(std::string_view pci_id);

/// gen4x16 for "16.0 GT/s PCIe" and "16"; nullopt when either is unknown.
std::optional<PcieLink> parse_link(std::string_view speed, std::string_view width);
/// The speed as the kernel writes it: "16.0 GT/s PCIe".
std::string link_speed_text(int generation);

/// A bus id in the form of Device::address; empty if it is malformed.
std::string parse_address(std::string_view bus_id);

/// The NUMA node at the top of each device's branch; empty if there is none.
std::vector<std::string> numa_nodes_of(const Host& host);

}  // namespace gdr::nccl
