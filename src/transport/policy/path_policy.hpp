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
/// "gdr", "staged", "tcp"; nothing for "auto". Throws InputError.
std::optional<TransportPath> parse_path(std::string_view text);

/// The distance of a GPU and a NIC in the PCIe tree, NCCL's names and numbers of NCCL_NET_GDR_LEVEL.
enum class NicDistance : unsigned char { loc, pix, pxb, phb, sys };
std::string_view to_string(NicDistance distance);
/// A name in upper or lower case, or a number; what is above 4 is SYS. Throws InputError.
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

/// What one side found out, before it knows of the other.
struct PathFacts {
  std::string memory;  ///< "fake0"
  std::string nics;    ///< "rxe0", "rxe0,rxe1", "none"
  bool has_nic = false;
  std::optional<TransportPath> wanted;  ///< explicitly; nothing: the policy chooses
  NicDistance distance = NicDistance::phb;
  NicDistance level = NicDistance::pxb;  ///< up to here gdr is worth it
  bool registers = false;          ///< whether a trial registration worked
  std::string registration;  ///< "dma-buf", "peer memory (dma-buf: ...)", or why it was refused
};

struct PathChoice {
  TransportPath path = TransportPath::tcp;
  std::string reason;
};

/// What one side would take, and why, and what it could do if the other asks for it (whatever the
/// distance).
struct PathOffer {
  PathChoice choice;
  TransportPath best = TransportPath::tcp;
  std::string not_better;  ///< why nothing better than `best` can be
  std::optional<TransportPath> wanted;
};
struct OwnChoice {
  Status status;  ///< an error when `wanted` cannot be had
  PathOffer offer;
};
OwnChoice choose_own(const PathFacts& facts);

/// The path that was asked for by name cannot be had here.
class PathUnavailable : public InputError {
 public:
  explicit PathUnavailable(Status why) : InputError(why.to_string()), status(std::move(why)) {}
  const Status status;
};

/// What both sides take: what one of them asks for, else the worse of the two choices. An error
/// when one cannot do what the other asks for, or both ask for different paths. Both sides come to
/// the same end.
Result<PathChoice> choose_together(const PathOffer& own, const PathOffer& peer);

/// The one line of a connection, in the shape of NCCL's:
/// "GPU Direct RDMA Enabled for GPU bar0 / HCA rxe0 (distance 1 <= 2), path gdr: peer memory (...)"
std::string log_line(const PathFacts& facts, const PathChoice& choice);

}  // namespace gdr::transport
