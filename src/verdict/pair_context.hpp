#pragma once

#include <string>
#include <vector>

#include "src/hardware/hardware.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {

/// Everything that the rules need to know about a pair, computed once.
struct PairContext {
  const Hardware* hardware = nullptr;
  PairKind kind = PairKind::gpu_nic;
  DeviceId from;  ///< in the order of the pair's name
  DeviceId to;
  DeviceId initiator;  ///< NIC, first GPU or drive
  DeviceId target;     ///< the GPU that is read and written

  Distance distance = Distance::none;
  int nvlinks = 0;
  PairRoute route = PairRoute::none;
  PeerRoutes routes;
  KernelP2pdma kernel = KernelP2pdma::unknown;
  const CpuModel* cpu = nullptr;  ///< nullptr: the file does not name the CPU
  bool tree_hidden = false;  ///< a virtual machine, virtual bridges or a cut source hide what the
                             ///< pair's route really is
  Bytes max_payload;         ///< largest TLP payload that everything on the direct route takes
  Bandwidth could_carry;     ///< the least of what either device could carry in a slot that fits it
                             ///< and of the NIC's network ports

  [[nodiscard]] const Host& host() const { return hardware->host_of(from); }
  [[nodiscard]] const Device& device(DeviceId id) const { return hardware->device(id); }
  [[nodiscard]] const Graph& graph() const { return hardware->graph(); }
  [[nodiscard]] const Device& initiator_device() const { return device(initiator); }
  [[nodiscard]] const Device& gpu() const { return device(target); }
  [[nodiscard]] bool over_nvlink() const { return route == PairRoute::nvlink; }
  /// True when TLPs are known to pass the root complex, by the wiring, by ACS or by the IOMMU.
  [[nodiscard]] bool through_root_complex() const;
};

PairContext make_pair_context(const Hardware& hardware, PairKind kind, DeviceId from, DeviceId to);

/// What the CPU forwards from one root port to another on the pair's route; nullopt where it does
/// not limit (as down the same root port after a redirect) or the CPU is not known.
struct ForwardLimit {
  std::optional<Bandwidth> read;
  std::optional<Bandwidth> write;
  /// The smaller one.
  [[nodiscard]] std::optional<Bandwidth> least() const;
};
ForwardLimit forward_limit(const PairContext& pair);

/// The bound of a pair's reads or writes.
struct AccessBound {
  Bandwidth rate;
  std::vector<Hop> links;  ///< the links that set it; empty: something else does
};
/// Upper bounds of the initiator's reads and writes of the target; nullopt: not known (the NVLinks'
/// generation).
struct PairBounds {
  std::optional<AccessBound> read;
  std::optional<AccessBound> write;
};
/// They follow the routes that the simulator takes, those of Hardware::peer_routes().
PairBounds pair_bounds(const PairContext& pair);
/// The rates alone.
PairBandwidth bandwidth_bound(const PairContext& pair);

/// The devices whose upward links the pair is known to use, each once: both ends, the switches
/// between them and, after a redirect, the uplink.
std::vector<DeviceId> links_on_route(const PairContext& pair);

/// "12.3 GB/s"
std::string gbps(Bandwidth bandwidth);

}  // namespace gdr
