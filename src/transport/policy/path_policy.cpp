#include "src/transport/policy/path_policy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>

#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::transport {
namespace {

constexpr std::array<std::string_view, 3> path_names{"gdr", "staged", "tcp"};
constexpr std::array<std::string_view, 5> distance_names{"LOC", "PIX", "PXB", "PHB", "SYS"};

/// The parts of a real path from the host bridge on: "pci0000:00", "0000:00:01.0"...
std::vector<std::string> bridges_and_function(const std::string& path) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(path)) {
    const std::string text = part.string();
    if (text.starts_with("pci0") || !parts.empty()) parts.push_back(text);
  }
  return parts;
}

}  // namespace

std::string_view to_string(TransportPath path) {
  return path_names[static_cast<std::size_t>(path)];
}
std::string_view to_string(NicDistance distance) {
  return distance_names[static_cast<std::size_t>(distance)];
}

std::optional<TransportPath> parse_path(std::string_view text) {
  if (text == "auto") return std::nullopt;
  for (std::size_t i = 0; i < path_names.size(); ++i)
    if (text == path_names[i]) return static_cast<TransportPath>(i);
  throw InputError(fmt::format("path \"{}\": it is auto, gdr, staged or tcp", printable(text)));
}

NicDistance parse_distance(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  for (std::size_t i = 0; i < distance_names.size(); ++i)
    if (upper == distance_names[i]) return static_cast<NicDistance>(i);
  unsigned number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size())
    return static_cast<NicDistance>(std::min(number, 4U));
  throw InputError(
      fmt::format("distance \"{}\": it is LOC, PIX, PXB, PHB or SYS, or a number from 0 to 4",
                  printable(text)));
}

PciPlace read_place(const std::string& sysfs_device) {
  PciPlace place{sysfs_device, -1};
  if (sysfs_device.empty()) return place;
  try {
    const std::string text = read_file(sysfs_device + "/numa_node");
    std::from_chars(text.data(), text.data() + text.size(), place.numa_node);
  } catch (const InputError&) {
    place.numa_node = -1;
  }
  return place;
}

NicDistance distance_of(const PciPlace& a, const PciPlace& b) {
  const auto parts_a = bridges_and_function(a.path);
  const auto parts_b = bridges_and_function(b.path);
  if (parts_a.empty() || parts_b.empty()) return NicDistance::phb;
  if (parts_a == parts_b) return NicDistance::loc;
  const auto differ = std::mismatch(parts_a.begin(), parts_a.end(), parts_b.begin(), parts_b.end());
  const auto common = differ.first - parts_a.begin();
  if (common < 2) {
    // They share a host bridge at most: NCCL's PHB means the same NUMA node.
    const bool same_node = common == 1 || (a.numa_node == b.numa_node && a.numa_node >= 0);
    return same_node ? NicDistance::phb : NicDistance::sys;
  }
  // Below the last common port: one switch is a downstream port and the device.
  const auto below = std::max(parts_a.end() - differ.first, parts_b.end() - differ.second);
  return below <= 2 ? NicDistance::pix : NicDistance::pxb;
}

OwnChoice choose_own(const PathFacts& facts) {
  OwnChoice own;
  PathOffer& offer = own.offer;
  offer.wanted = facts.wanted;
  if (facts.wanted == TransportPath::tcp) {
    offer.choice = {TransportPath::tcp, "asked for"};
    offer.not_better = "tcp was asked for";
    return own;
  }
  offer.best = !facts.has_nic    ? TransportPath::tcp
               : facts.registers ? TransportPath::gdr
                                 : TransportPath::staged;
  if (!facts.has_nic) offer.not_better = "there is no RDMA device with an active port";
  if (facts.has_nic && !facts.registers)
    offer.not_better = fmt::format("{} does not register with {}: {}", facts.memory, facts.nics,
                                   facts.registration);
  if (facts.wanted) {
    offer.choice = {*facts.wanted, *facts.wanted == TransportPath::gdr
                                       ? "asked for, " + facts.registration
                                       : "asked for"};
    if (offer.best > *facts.wanted)
      own.status = Status(
          Cause::registration_refused,
          fmt::format("path {} was asked for: {}", to_string(*facts.wanted), offer.not_better));
    return own;
  }
  offer.choice = {offer.best,
                  offer.best == TransportPath::gdr ? facts.registration : offer.not_better};
  if (offer.best == TransportPath::gdr && facts.distance > facts.level)
    offer.choice = {
        TransportPath::staged,
        fmt::format("{} is farther than {}", to_string(facts.distance), to_string(facts.level))};
  return own;
}

Result<PathChoice> choose_together(const PathOffer& own, const PathOffer& peer) {
  if (own.wanted && peer.wanted && own.wanted != peer.wanted)
    return Status(Cause::invalid, fmt::format("path {} was asked for here and {} by the peer",
                                              to_string(*own.wanted), to_string(*peer.wanted)));
  if (own.wanted) {
    if (peer.best > *own.wanted)
      return Status(Cause::invalid, fmt::format("path {} was asked for, but the peer cannot: {}",
                                                to_string(*own.wanted), peer.not_better));
    return own.choice;
  }
  if (peer.wanted) {
    if (own.best > *peer.wanted)
      return Status(Cause::invalid,
                    fmt::format("path {} was asked for by the peer, but cannot be here: {}",
                                to_string(*peer.wanted), own.not_better));
    return PathChoice{*peer.wanted, "asked for by the peer"};
  }
  if (peer.choice.path <= own.choice.path) return own.choice;
  return PathChoice{peer.choice.path, "the peer: " + peer.choice.reason};
}

std::string log_line(const PathFacts& facts, const PathChoice& choice) {
  return fmt::format("GPU Direct RDMA {} for GPU {} / HCA {} (distance {} {} {}), path {}: {}",
                     choice.path == TransportPath::gdr ? "Enabled" : "Disabled", facts.memory,
                     facts.nics, static_cast<int>(facts.distance),
                     facts.distance <= facts.level ? "<=" : ">", static_cast<int>(facts.level),
                     to_string(choice.path), choice.reason);
}

}  // namespace gdr::transport
