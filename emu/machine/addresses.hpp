#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::emu {

/// A device and the number that ends its name: gpu3 is /dev/gdr-gpu3, nic3 is rxe3.
struct Numbered {
  std::size_t number = 0;
  std::size_t device = 0;  ///< index in host.devices
};

/// The host's devices of a kind by number. Throws InputError when a name does not end in a number
/// below 256 or two have the same.
std::vector<Numbered> numbered_devices(const Host& host, DeviceKind kind);

/// Ethernet address of a NIC, by which the guest identifies its interface.
std::string mac_address(std::size_t host, std::size_t nic);

/// IPv4 address of a NIC. NICs with the same number share a subnet of 24 bits.
std::string ip_address(std::size_t host, std::size_t nic);

/// Ethernet and IPv4 address of a host's interface in the management network, 192.168.0.0/24.
std::string management_mac_address(std::size_t host);
std::string management_address(std::size_t host);

/// How many hosts a subnet has addresses for.
inline constexpr std::size_t max_hosts = 254;

}  // namespace gdr::emu
