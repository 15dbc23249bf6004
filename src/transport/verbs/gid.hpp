#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

/// "10.0.0.1" for an IPv4 address in a GID, else eight groups of hex digits.
std::string to_string(const Gid& gid);

/// The entry to use. Without `wanted`: on Ethernet the first RoCEv2 entry of a global address, IPv4
/// before IPv6, then a link-local one; on InfiniBand the first. With `wanted`: that entry. An error
/// lists the entries.
Result<GidEntry> select_gid(const std::string& device, const std::vector<GidEntry>& entries,
                            bool ethernet, std::optional<unsigned> wanted);

}  // namespace gdr::transport
