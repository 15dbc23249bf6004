#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/nccl/distance.hpp"
#include "src/verdict/pair_context.hpp"

namespace gdr {

/// What a rule's finding does to its pair. The severity follows from it and from whether the pair
/// is the best of a GPU.
enum class Effect {
  blocks,     ///< the pair cannot work
  slows,      ///< less than half of what the devices could carry is left
  unknown,    ///< what decides is not in the file
  may_block,  ///< unknown as well, but some machines of this kind are known not to work
  costs,      ///< a setting costs bandwidth or breaks ordering
  informs,    ///< worth knowing
};

/// What a finding is about: the pair itself, a device, the port above a device, the whole host, or
/// all its pairs together, whose severity is that of the worst pair.
struct Place {
  enum class Kind { pair, device, port, host, pairs };
  Kind kind = Kind::pair;
  std::string device;  ///< kind device and port
  std::string above;   ///< port: the device above
  bool root = false;   ///< port: a root port, else a switch's downstream port
  std::string bits;    ///< port: "RR+CR"; empty: not known
  auto operator<=>(const Place&) const = default;
};

/// One rule's finding about one pair. `reason` and `remedy` are sentences that name no pair, so
/// that equal ones can be merged.
struct RuleNote {
  std::string rule;
  Effect effect = Effect::informs;
  Place place;
  std::string reason;
  std::string remedy;
};
using RuleNotes = std::vector<RuleNote>;

// Each judges one pair and adds the notes of its family of rules.
void wiring_rules(const PairContext& pair,
                  RuleNotes& notes);  ///< sockets, host bridges, virtual machines
void acs_rules(const PairContext& pair, RuleNotes& notes);    ///< redirection at switch ports
void iommu_rules(const PairContext& pair, RuleNotes& notes);  ///< address translation
void device_rules(const PairContext& pair,
                  RuleNotes& notes);  ///< GPU class, BAR, support by drivers
void software_rules(const PairContext& pair,
                    RuleNotes& notes);  ///< nvidia-peermem, dma-buf, kernel, CUDA
void link_rules(const PairContext& pair, RuleNotes& notes);      ///< widths, speeds, read requests
void ordering_rules(const PairContext& pair, RuleNotes& notes);  ///< relaxed ordering
void network_rules(const PairContext& pair, RuleNotes& notes);   ///< RoCE

// These judge pairs in use: the best one of each GPU.
void nccl_rules(const PairContext& pair, const NcclDistances& nccl,
                RuleNotes& notes);  ///< NCCL_NET_GDR_LEVEL
/// Uplinks of switches that several pairs in use share: (index in `pairs`, note).
std::vector<std::pair<std::size_t, RuleNote>> sharing_rules(
    const std::vector<const PairContext*>& pairs);

/// Whether memory of an NVIDIA GPU can be registered through dma-buf: kernel 5.12, CUDA 11.7, open
/// kernel modules. nullopt: not stated.
std::optional<bool> dma_buf_possible(const PairContext& pair);

Place device_place(const PairContext& pair, DeviceId device);
Place port_place(const PairContext& pair, DeviceId device, std::string bits);
inline Place host_place() { return {Place::Kind::host, {}, {}, false, {}}; }
inline Place pairs_place() { return {Place::Kind::pairs, {}, {}, false, {}}; }

}  // namespace gdr
