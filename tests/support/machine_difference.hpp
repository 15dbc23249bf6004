#pragma once

#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::test {

/// Lists how `seen`, imported from a guest, differs from `original`, the one-host topology that the
/// guest was started from. Each line has the device, the property and both values. Devices are
/// matched by their place in the tree, in file order; names, addresses and bus numbers are ignored.
/// It compares the tree, NUMA nodes, sockets and their models, ids, links, ACS, ATS, payload and
/// read request sizes, BARs, rates, the IOMMU and nvidia-peermem, and for each pair distance,
/// route, answer, bandwidth and findings.
///
/// It ignores what no guest shows (docs/emulation.md): NVLink, the number of a NIC's ports,
/// versions of kernel, CUDA and NCCL, a NIC's network settings, and models that do not list the
/// file's ID. It also ignores what the topology leaves open, such as ACS. Verdicts are compared
/// without these facts.
std::vector<std::string> differences(const Topology& original, const Topology& seen,
                                     const ModelLibrary& models);

}  // namespace gdr::test
