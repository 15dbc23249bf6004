#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// What the kept elements of a device say of it: kind, address, ids, link, ports. Import fills a
/// new device with it; export compares to see what was changed since. Model, name and place in the
/// tree are not touched.
void read_facts(Device& device);

/// What the elements of a host's devices say of NVLink, xGMI and C2C.
std::vector<NvLink> read_nvlinks(const Host& host);

/// A bridge that QEMU or a hypervisor made up, and whose link attributes therefore say nothing.
bool is_virtual_bridge(const NcclElement& pci);

/// A GPU inside a processor, by its id: the link that it reports is made up.
bool is_integrated_gpu(std::string_view pci_id);

/// "16.0 GT/s PCIe" and "16" as gen4x16; nullopt when either says nothing.
std::optional<PcieLink> parse_link(std::string_view speed, std::string_view width);
/// The speed as the kernel writes it: "16.0 GT/s PCIe".
std::string link_speed_text(int generation);

/// A bus id in the form of Device::address; empty when it is none.
std::string parse_address(std::string_view bus_id);

/// For each device of a host the NUMA node that it is in the end below; empty when there is none.
std::vector<std::string> numa_nodes_of(const Host& host);

}  // namespace gdr::nccl
