#pragma once

#include <string>

#include "src/topology/topology.hpp"

namespace gdr::report {

/// The topology in Graphviz's language: one box per host, in it one box per socket and NUMA node,
/// links of the PCIe tree as lines with their speed (red where ACS redirects), NVLinks in words.
/// Hosts that differ in nothing but their name are drawn once.
std::string show_dot(const Topology& topology);

}  // namespace gdr::report
