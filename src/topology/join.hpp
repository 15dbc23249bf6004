#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

/// The hosts of several topologies, one after another, on one network: that of the first that has
/// one, else one by the link layer of their NICs. Names of hosts stay where they differ; otherwise
/// they become h0, h1... `files` name the topologies in errors. Throws InputError where two say
/// different things of the network or of staging.
Topology join(const std::vector<Topology>& topologies, const std::vector<std::string>& files);

/// A network where nothing tells of it but the link layer of its NICs.
Fabric fabric_of_nics(const Topology& topology);

}  // namespace gdr
