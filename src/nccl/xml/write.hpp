#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// Writes one host as a topology file for NCCL (for RCCL if it has AMD GPUs). The content of an
/// imported file comes back verbatim and in order, except for attributes whose typed fields have
/// changed since. For other topologies addresses, numbers and affinities are invented; kinds, tree
/// and links are the topology's. `models` supplies what devices leave to their models.
std::string export_nccl_xml(const Topology& topology, std::size_t host,
                            const ModelLibrary* models = nullptr);

namespace nccl {

/// The elements of a host's NUMA nodes and devices, in order; empty for those that NCCL ignores.
struct HostElements {
  std::vector<std::vector<NcclElement>> numa_nodes;
  std::vector<std::vector<NcclElement>> devices;
};

/// `complete` adds what NCCL would detect on the machine: ranks, and gpu and net elements that a
/// file lacks.
HostElements host_elements(const Topology& topology, std::size_t host, const ModelLibrary* models,
                           bool complete);

/// Writes a host with these elements as a file.
std::string write_xml(const Host& host, HostElements elements);

}  // namespace nccl
}  // namespace gdr
