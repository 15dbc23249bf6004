#include "src/transport/connection/diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {
namespace {

/// Whether the GID that the queue pairs use is still in the NIC's table, which loses it together
/// with its address.
bool has_gid(const Nic& nic) {
  const auto entries = nic.device->gids();
  return std::any_of(entries.begin(), entries.end(), [&](const GidEntry& entry) {
    return entry.index == nic.gid.index && entry.gid == nic.gid.gid;
  });
}

}  // namespace

Diagnosis diagnose(const Nic& nic, CompletionStatus failure, const std::string& peer) {
  const std::string what(to_string(failure));
  // If the address is gone, rdma_rxe finds no route and reports local_operation; other NICs keep
  // sending.
  if (failure == CompletionStatus::retry_exceeded || failure == CompletionStatus::local_operation) {
    if (nic.port_down || !nic.device->port().active)
      return {{Cause::link_lost, fmt::format("{}: its port is down ({})", nic.name, what)}};
    if (!has_gid(nic))
      return {
          {Cause::link_lost, fmt::format("{}: its address {} is gone from GID index {} ({})",
                                         nic.name, to_string(nic.gid.gid), nic.gid.index, what)}};
  }
  switch (failure) {
    case CompletionStatus::flushed:
      return {{Cause::device_failed,
               fmt::format("{}: a queue pair failed, and no reason was reported", peer)},
              false};
    case CompletionStatus::retry_exceeded:
      return {
          {Cause::peer_gone, fmt::format("{} does not answer on {} ({})", peer, nic.name, what)}};
    case CompletionStatus::rnr_exceeded:
      return {{Cause::peer_gone,
               fmt::format("{} takes no more messages on {} ({})", peer, nic.name, what)}};
    case CompletionStatus::remote_access:
    case CompletionStatus::remote_invalid:
    case CompletionStatus::remote_operation:
      // A killed peer loses its memory first; a peer that frees memory reports it.
      return {{Cause::remote_access,
               fmt::format("{} refused an address or key ({}); was its memory freed?", peer, what)},
              false};
    default:
      return {{Cause::device_failed, fmt::format("{}: {}", nic.name, what)}};
  }
}

}  // namespace gdr::transport
