#include "src/transport/verbs/gid.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {
namespace {

bool is_ipv4(const Gid& gid) {
  return std::all_of(gid.begin(), gid.begin() + 10, [](std::uint8_t byte) { return byte == 0; }) &&
         gid[10] == 0xff && gid[11] == 0xff;
}
bool is_link_local(const Gid& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0U) == 0x80; }

/// Lower is better; 9 cannot be used.
int rank(const GidEntry& entry, bool ethernet) {
  if (!ethernet) return entry.type == GidType::infiniband ? 0 : 9;
  if (entry.type != GidType::rocev2) return 9;
  return is_ipv4(entry.gid) ? 0 : is_link_local(entry.gid) ? 2 : 1;
}

std::string describe(const GidEntry& entry) {
  const char* type = entry.type == GidType::rocev2   ? "RoCEv2"
                     : entry.type == GidType::rocev1 ? "RoCEv1"
                                                     : "InfiniBand";
  return fmt::format("{} {} {}", entry.index, type, to_string(entry.gid));
}

}  // namespace

std::string to_string(const Gid& gid) {
  if (is_ipv4(gid)) return fmt::format("{}.{}.{}.{}", gid[12], gid[13], gid[14], gid[15]);
  std::string text;
  for (std::size_t i = 0; i < gid.size(); i += 2)
    text += fmt::format("{}{:02x}{:02x}", i == 0 ? "" : ":", gid[i], gid[i + 1]);
  return text;
}

Result<GidEntry> select_gid(const std::string& device, const std::vector<GidEntry>& entries,
                            bool ethernet, std::optional<unsigned> wanted) {
  std::string list;
  for (const GidEntry& entry : entries) list += (list.empty() ? "" : ", ") + describe(entry);
  if (list.empty()) list = "none";
  if (wanted) {
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const GidEntry& entry) { return entry.index == *wanted; });
    if (found == entries.end())
      return Status(Cause::invalid, fmt::format("{}: there is no GID index {}; there are: {}",
                                                device, *wanted, list));
    return *found;
  }
  const auto best = std::min_element(
      entries.begin(), entries.end(),
      [&](const GidEntry& a, const GidEntry& b) { return rank(a, ethernet) < rank(b, ethernet); });
  if (best == entries.end() || rank(*best, ethernet) == 9)
    return Status(Cause::invalid,
                  fmt::format("{}: no {} among its GIDs: {}; has its interface an address?", device,
                              ethernet ? "RoCEv2 entry" : "entry", list));
  return *best;
}

}  // namespace gdr::transport
