#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/common/error.hpp"
#include "src/common/status.hpp"

namespace gdr::transport {

/// How bytes get from one device's memory to the other's, best first.
enum class TransportPath : unsigned char { gdr, staged, tcp };
std::string_view to_string(TransportPath path);
/// "gdr", "staged", "tcp"; nullopt for "auto". Throws InputError.
std::optional<TransportPath> parse_path(std::string_view text);

/// The distance of a GPU and a NIC of this machine in its PCIe tree, with the names and numbers of
/// NCCL's NCCL_NET_GDR_LEVEL. It is measured on /sys, without a topology: src/hardware has the
/// distance of devices in a topology file.
enum class NicDistance : unsigned char { loc, pix, pxb, phb, sys };
std::string_view to_string(NicDistance distance);
/// A name in upper or lower case, or a number; a number above 4 is SYS. Throws InputError.
NicDistance parse_distance(std::string_view text);

/// Where a device is: the real path of its PCI function in /sys ("" when it has none) and its NUMA
/// node (-1: unknown).
struct PciPlace {
  std::string path;
  int numa_node = -1;
};
PciPlace read_place(const std::string& sysfs_device);
/// PIX: at most one switch between them; PXB: several; PHB: the same NUMA node, or a device that is
/// in no PCIe tree; SYS: else.
NicDistance distance_of(const PciPlace& a, const PciPlace& b);

/// What one side has detected, before the other's greeting arrives.
struct PathFacts {
  std::string memory;  ///< "fake0"
  std::string nics;    ///< "rxe0", "rxe0,rxe1", "none"
  bool has_nic = false;
  std::optional<TransportPath> wanted;  ///< set: asked for; nullopt: the policy chooses
  NicDistance distance = NicDistance::phb;
  NicDistance level = NicDistance::pxb;  ///< the farthest at which gdr is worth it
  bool registers = false;                ///< whether a trial registration worked
  std::string registration;  ///< "dma-buf", "peer memory (dma-buf: ...)", or why it was refused
};

struct PathChoice {
  TransportPath path = TransportPath::tcp;
  std::string reason;
};

/// What one side would choose and why, and the best that it could do if the other side asked for it
/// (at any distance).
struct PathOffer {
  PathChoice choice;
  TransportPath best = TransportPath::tcp;
  std::string not_better;  ///< why nothing better than `best` is possible
  std::optional<TransportPath> wanted;
};
struct OwnChoice {
  Status status;  ///< an error when `wanted` cannot be had
  PathOffer offer;
};
OwnChoice choose_own(const PathFacts& facts);

/// The path that was asked for is not possible on this side.
class PathUnavailable : public InputError {
 public:
  explicit PathUnavailable(Status why) : InputError(why.to_string()), status(std::move(why)) {}
  const Status status;
};

/// What both sides take: what one of them asks for, else the worse of the two choices. An error
/// when one cannot do what the other asks for, or both ask for different paths. Both sides reach
/// the same result.
Result<PathChoice> choose_together(const PathOffer& own, const PathOffer& peer);

/// The line that a connection logs, worded as NCCL's:
/// "GPU Direct RDMA Enabled for GPU bar0 / HCA rxe0 (distance 1 <= 2), path gdr: peer memory (...)"
std::string log_line(const PathFacts& facts, const PathChoice& choice);

}  // namespace gdr::transport
