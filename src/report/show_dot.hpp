#pragma once

#include <string>

#include "src/topology/topology.hpp"

namespace gdr::report {

/// The topology in Graphviz's language: a box a host, in it a box a socket and a NUMA node, links
/// of the PCIe tree as lines with their speed (red where ACS redirects), NVLinks in words. Hosts
/// that differ in nothing but their name are drawn once.
std::string show_dot(const Topology& topology);

}  // namespace gdr::report
