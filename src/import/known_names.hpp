#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/topology/topology.hpp"

namespace gdr::observed {

// lspci without -n prints names where the machine has ids; these find the ids again, as far as they
// matter here.

/// "3D controller" as 0x030200; nullopt for a class that is not known.
std::optional<unsigned> class_of_name(std::string_view name);

/// "Device 2335" of a known vendor, or a name that stands for one id, as "10de:2335". Empty: not
/// known. Names of several products
/// ("Elastic Fabric Adapter") give none.
std::string id_of_name(std::string_view text);

/// The kind that the words of a device say when its class is not printed; nullopt: they say none.
std::optional<DeviceKind> kind_of_name(std::string_view text);

/// Vendor's id by the words that a device's text begins with: "10de"; empty: not known.
std::string vendor_of_name(std::string_view text);

/// True for words of virtual machines: QEMU, Virtio, Red Hat's bridges, hypervisors' NICs.
bool is_virtual_name(std::string_view text);

/// True for a network controller that does no RDMA: by vendor and device, "8086:1521", else by its
/// words.
bool is_plain_ethernet(std::string_view pci_id, std::string_view text);

}  // namespace gdr::observed
