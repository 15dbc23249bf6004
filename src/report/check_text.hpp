#pragma once

#include <string>

#include "src/topology/topology.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::report {

/// The verdict for people, within 80 columns: for each host its matrices of pairs, the best NIC of
/// each GPU, and the findings. Hosts that differ in nothing but their name are shown once.
std::string check_text(const Topology& topology, const Verdict& verdict);

}  // namespace gdr::report
