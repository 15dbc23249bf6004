#pragma once

#include <string>
#include <vector>

#include "src/hardware/device_models.hpp"
#include "src/hardware/peer_routes.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {

/// Everything the rules ask about a pair, found once.
struct PairContext {
  const Graph* graph = nullptr;
  const ModelLibrary* models = nullptr;
  PairKind kind = PairKind::gpu_nic;
  DeviceId from;  ///< as the pair is written
  DeviceId to;
  DeviceId initiator;  ///< NIC, first GPU or drive
  DeviceId target;     ///< the GPU that is read and written

  Distance distance = Distance::none;
  int nvlinks = 0;
  PairRoute route = PairRoute::none;
  PeerWays ways;
  KernelP2pdma kernel = KernelP2pdma::unknown;
  const CpuModel* cpu = nullptr;  ///< nullptr: the file does not say which CPU it is
  bool tree_hidden = false;  ///< a virtual machine, virtual bridges or a cut source hide what the
                             ///< pair's way really is
  Bytes max_payload;         ///< MPS that both can use
  Bandwidth could_carry;     ///< what the slower device could carry in a slot that fits it, or the
                             ///< NIC's network ports

  [[nodiscard]] const Host& host() const { return graph->topology().hosts.at(from.host); }
  [[nodiscard]] const Device& device(DeviceId id) const { return get(graph->topology(), id); }
  [[nodiscard]] const Device& initiator_device() const { return device(initiator); }
  [[nodiscard]] const Device& gpu() const { return device(target); }
  [[nodiscard]] bool over_nvlink() const { return route == PairRoute::nvlink; }
  /// True when TLPs pass the root complex, by the wiring, by ACS or by the IOMMU.
  [[nodiscard]] bool through_root_complex() const;
};

PairContext make_pair_context(const Graph& graph, const ModelLibrary& models, PairKind kind,
                              DeviceId from, DeviceId to);

/// What the CPU forwards from one root port to another on the pair's way; nullopt where it does not
/// limit (as on the way back down the same root port, after a redirect) or the CPU is not known.
struct ForwardLimit {
  std::optional<Bandwidth> read;
  std::optional<Bandwidth> write;
  /// The smaller one.
  [[nodiscard]] std::optional<Bandwidth> least() const;
};
ForwardLimit forward_limit(const PairContext& pair);

/// Devices whose upward links the pair uses, each once: both ends, the switches between and, after
/// a redirect, the uplink.
std::vector<DeviceId> links_on_way(const PairContext& pair);

/// "12.3 GB/s"
std::string gbps(Bandwidth bandwidth);

}  // namespace gdr
