#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "src/topology/topology.hpp"

namespace gdr {

class ModelLibrary;

/// What a virtual machine sees: the guest address of each GPU or NIC that is passed through, and
/// the guest number of each NUMA node whose number differs.
struct GuestMap {
  struct Place {
    std::string guest;     ///< "0001:00:00.0"
    std::size_t line = 0;  ///< from 1
  };
  std::string name;                      ///< name of the file, for errors
  std::map<std::string, Place> devices;  ///< by full address or name on the host
  std::map<std::string, Place> numa;     ///< by node name; `guest` is a number
};

/// Lines "HOST-ADDRESS-OR-NAME GUEST-ADDRESS" and "numa NAME NUMBER"; # starts a comment. Throws
/// InputError that names file and line: other lines, bad addresses, a device or an address twice.
GuestMap parse_guest_map(std::string_view text, const std::string& name);

/// A file for NCCL_TOPO_FILE inside the guest: the devices of the map at their guest addresses,
/// below the host's NUMA nodes and switches, which get invented bus ids (ffff:ff:00.0 and up). It
/// omits what NCCL detects there itself (gpu, nic and nvlink elements, affinities). Throws
/// InputError for a line that names no GPU or NIC of the host, and for NUMA nodes that would become
/// one.
std::string export_guest_xml(const Topology& topology, std::size_t host, const GuestMap& map,
                             const ModelLibrary* models = nullptr);

}  // namespace gdr
