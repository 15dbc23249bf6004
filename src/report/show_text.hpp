#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr::report {

/// An indented tree that fits 80 columns: host, socket, NUMA node, host bridge or switch, device
/// with its model, link, address and ACS bits; then the NVLinks of each GPU and the fabric. Hosts
/// that differ in nothing but their name are shown once.
std::string show_text(const Topology& topology);

/// Hosts that are equal but for their name, as lists of indices in file order.
std::vector<std::vector<std::size_t>> equal_hosts(const Topology& topology);

/// "h0", "h0, h1" or, for many, "h0, h1, ..., h63 (64 hosts)".
std::string host_names(const Topology& topology, const std::vector<std::size_t>& hosts);

/// What is known of a device's link: "gen4x8", and "gen4x8 of gen5x16" where its ends can do more;
/// else empty.
std::string link_text(const Device& device);

/// The name for an NVSwitch that the machine does not show. No device can have it: it contains a
/// space.
inline constexpr std::string_view hidden_nvswitch = "an NVSwitch";

/// NVLinks of a GPU by the other end: (name, links), in order of first mention.
std::vector<std::pair<std::string, int>> nvlink_peers(const Host& host, std::string_view gpu);

/// "each of gpu0 to gpu7: 12 x an NVSwitch": GPUs with the same peers share a line; in a mesh every
/// GPU has its own.
std::vector<std::string> nvlink_lines(const Host& host);

}  // namespace gdr::report
