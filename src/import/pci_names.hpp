#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/topology/topology.hpp"

namespace gdr::observed {

// lspci without -n prints names instead of ids. These functions find the ids that gdr needs.

/// 0x030200 for "3D controller"; nullopt for an unknown class.
std::optional<unsigned> class_of_name(std::string_view name);

/// The id, as "10de:2335", of "Device 2335" with a known vendor or of a name that belongs to a
/// single id. Empty if unknown: a name of several products ("Elastic Fabric Adapter") has no id.
std::string id_of_name(std::string_view text);

/// The kind of a device by its text, for listings without a class; nullopt if unknown.
std::optional<DeviceKind> kind_of_name(std::string_view text);

/// The vendor's id ("10de") by the start of a device's text; empty if unknown.
std::string vendor_of_name(std::string_view text);

/// True for the text of a virtual device: QEMU, Virtio, Red Hat's bridges, hypervisors' NICs.
bool is_virtual_name(std::string_view text);

/// True for a network controller without RDMA, by its id ("8086:1521") if known, else by its text.
bool is_plain_ethernet(std::string_view pci_id, std::string_view text);

}  // namespace gdr::observed
