#pragma once

#include "src/import/observed.hpp"
#include "src/nccl/xml/identify.hpp"
#include "src/topology/topology.hpp"

namespace gdr::observed {

/// Turns what was seen of a machine into a host of a topology: host bridges, switches, GPUs, NICs,
/// drives and NVSwitches. What no source says stays unknown, such as the place of a device or the
/// number of a NUMA node. Contradictions, and what has no field, become remarks. The host is named
/// h0.
Host make_host(Machine machine, const nccl::Identifier& identifier);

/// Parts of make_host() that have files of their own.

/// The kind of a function that is not a bridge; nullopt if it is irrelevant, such as a virtio
/// network function without an RDMA device, which carries a virtual machine's management traffic.
std::optional<DeviceKind> kind_of(const Function& function, const nccl::Identifier& identifier);
/// Fills a device from its function and the port above it (nullptr: not shown).
void read_device(const Machine& machine, const Function& function, const Function* port,
                 Device& device, std::vector<Remark>& remarks);
/// Compares the table of nvidia-smi with the host's tree and takes from it what the tree lacks. A
/// host without devices gets the table's GPUs and NICs.
void apply_matrix(const Matrix& matrix, Host& host);
/// Adds sockets and NUMA nodes from what the processor and the kernel report.
void add_numa_nodes(const Machine& machine, const nccl::Identifier& identifier, Host& host);
/// The node for devices whose NUMA node is unknown; added on first use.
std::string unknown_numa(Host& host);

}  // namespace gdr::observed
