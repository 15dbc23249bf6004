#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// One host as a topology file that NCCL reads (RCCL when it has AMD GPUs). What an imported file
/// said comes back in its order and to the letter, except for attributes whose typed fields were
/// changed since. For other topologies addresses, numbers and affinities are made up; kinds, tree
/// and links are the topology's. `models` fills in what devices leave to their models.
std::string export_nccl_xml(const Topology& topology, std::size_t host,
                            const ModelLibrary* models = nullptr);

namespace nccl {

/// The elements of a host's NUMA nodes and devices, in their order; empty for what NCCL does not
/// look at.
struct HostElements {
  std::vector<std::vector<NcclElement>> numa_nodes;
  std::vector<std::vector<NcclElement>> devices;
};

/// `complete` adds what NCCL would find out on the machine: gpu and net elements of files that have
/// none, ranks.
HostElements host_elements(const Topology& topology, std::size_t host, const ModelLibrary* models,
                           bool complete);

/// A host of these elements as a file.
std::string write_xml(const Host& host, HostElements elements);

}  // namespace nccl
}  // namespace gdr
