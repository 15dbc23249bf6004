#pragma once

#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

/// Joins the hosts of several topologies, in order, on one network: the first network that one of
/// them has, else one that fits the link layer of their NICs. Host names stay if they are unique;
/// otherwise they become h0, h1... `files` names the topologies in errors. Throws InputError when
/// two topologies have different networks or staging.
Topology join(const std::vector<Topology>& topologies, const std::vector<std::string>& files);

/// The network to assume when only the link layer of the NICs is known.
Fabric fabric_of_nics(const Topology& topology);

}  // namespace gdr
