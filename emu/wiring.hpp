#pragma once

#include <string>
#include <vector>

#include "emu/unique_fd.hpp"
#include "topology/topology.hpp"

namespace gdr::emu {

/// How the NICs of one host are joined to those of others.
struct HostWiring {
  std::vector<std::string> arguments;  ///< of QEMU: a netdev a NIC, named as the NIC
  std::vector<UniqueFd> descriptors;   ///< what the QEMU gets as first_descriptor, first_descriptor + 1...
};

/// Joins nicN of two hosts by a cable, a pair of stream sockets without a name; NICs without a partner are joined to nothing. The
/// descriptors are numbered from `first_descriptor` in each QEMU. Throws InputError when there are more than two hosts.
std::vector<HostWiring> wire_hosts(const Topology& topology, int first_descriptor);

}  // namespace gdr::emu
