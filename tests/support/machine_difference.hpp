#pragma once

#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::test {

/// How `seen`, imported from a guest, differs from `original`, the topology of one host that the
/// guest was started from: a line each, with the device, what it is about, and both values. Names,
/// addresses and bus numbers do not count; devices are matched by their place in the tree, in the
/// order of the file. Compared are the tree, NUMA nodes, sockets and their models, identities,
/// links, ACS, ATS, payload and read request sizes, BARs, rates, what the topology says of IOMMU
/// and nvidia-peermem, and of each pair distance, route, answer, bandwidth and findings.
///
/// Not compared is what no guest shows (docs/emulation.md): NVLink, the number of a NIC's ports,
/// versions of kernel, CUDA and NCCL, a NIC's settings of the network, and models that do not list
/// the ID which the file gives; nor what the topology leaves open, as ACS. Verdicts are compared
/// with these left out, or equal.
std::vector<std::string> differences(const Topology& original, const Topology& seen,
                                     const ModelLibrary& models);

}  // namespace gdr::test
