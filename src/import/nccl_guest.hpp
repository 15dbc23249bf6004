#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// What a virtual machine sees: for each GPU or NIC that is passed through (by the host's address,
/// or by name) the address it has in the guest. NUMA nodes that have another number there are
/// named, too.
struct GuestMap {
  struct Place {
    std::string guest;     ///< "0001:00:00.0"
    std::size_t line = 0;  ///< from 1
  };
  std::string name;                      ///< of the file, for errors
  std::map<std::string, Place> devices;  ///< by address in full, or name, on the host
  std::map<std::string, Place> numa;     ///< by name of the node; `guest` is a number
};

/// Lines "HOST-ADDRESS-OR-NAME GUEST-ADDRESS" and "numa NAME NUMBER"; # starts a comment. Throws
/// InputError naming file and line: other lines, no address, a device or an address twice.
GuestMap parse_guest_map(std::string_view text, const std::string& name);

/// A file for NCCL_TOPO_FILE inside the guest: the host's NUMA nodes and switches (at made-up bus
/// ids, ffff:ff:00.0 and up) above the devices that the map names, at their addresses in the guest.
/// What NCCL finds out for itself there (gpu, nic, nvlink elements, affinities) is left out. Throws
/// InputError for a line that names no GPU or NIC of the host, and for NUMA nodes that would become
/// one.
std::string export_guest_xml(const Topology& topology, std::size_t host, const GuestMap& map,
                             const ModelLibrary* models = nullptr);

}  // namespace gdr
