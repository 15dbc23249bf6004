#pragma once

#include "src/import/observed.hpp"
#include "src/nccl/xml/identify.hpp"
#include "src/topology/topology.hpp"

namespace gdr::observed {

/// What was seen of a machine as a host of a topology: host bridges, switches, GPUs, NICs, drives
/// and NVSwitches with what is known of them. What no source told is unknown: devices without a
/// shown place, NUMA nodes without a number. Contradictions and what the host has no field for
/// become remarks. The host is named h0.
Host make_host(Machine machine, const nccl::Identifier& identifier);

/// Of make_host, in files of their own.

/// The kind of a function that is no bridge; nullopt: of no interest here, as is a network function
/// of virtio without RDMA device, which the management of a virtual machine goes over.
std::optional<DeviceKind> kind_of(const Function& function, const nccl::Identifier& identifier);
/// Fills a device with what its function and the port above it (nullptr: not shown) say.
void read_device(const Machine& machine, const Function& function, const Function* port,
                 Device& device, std::vector<Remark>& remarks);
/// Compares the table of nvidia-smi with the host's tree and takes from it what the tree does not
/// have; a host without devices gets the table's GPUs and NICs.
void apply_matrix(const Matrix& matrix, Host& host);
/// Sockets and NUMA nodes by what the processor and the kernel said.
void add_numa_nodes(const Machine& machine, const nccl::Identifier& identifier, Host& host);
/// The node for devices of which none is known; added when it is first asked for.
std::string unknown_numa(Host& host);

}  // namespace gdr::observed
