#pragma once

#include "sim/flow/build.hpp"

namespace gdr::sim {

// Memory below this is served by the last-level cache where DMA allocates in it (two ways of a
// small one).
constexpr Bytes cache_share{8U << 20U};

/// What a flow is made from, and what there is of it so far.
struct FlowContext {
  const Hardware& hardware;
  const TransferPlan& plan;
  const Drive& drive;
  Resources& resources;
  std::size_t number = 0;  ///< of the flow in the scenario
  FlowSpec flow{};         ///< the stages before the one that is being made
  Costs costs{};

  [[nodiscard]] const Graph& graph() const { return hardware.graph(); }
  [[nodiscard]] Bytes size() const { return plan.transfer.size; }
  /// The socket whose core drives what happens near a NUMA node.
  [[nodiscard]] VertexId driver(std::size_t host, std::size_t numa) const {
    return graph().socket(host, graph().socket_of_numa(host, numa));
  }
};

inline double nanoseconds(Duration d) { return d.seconds * 1e9; }

/// How much of the stage moves at once in the simulation: the stage's piece, or several as one
/// where they join and finer ones do not show.
Bytes piece_of(const FlowContext& flow, const Stage& stage);

/// Units for each byte of payload of this flow: small transfers do not fill their last packet, so
/// that their share of headers is what they have.
double units_per_byte(const FlowContext& flow, const StageSpec& spec);

/// The stage works on a resource, with so many units for each byte.
void use(FlowContext& flow, StageSpec& spec, std::size_t resource, double units_per_byte);

/// The stage moves at most so much payload in a second, whatever the headers; the least limit
/// stays.
void limit(const FlowContext& flow, StageSpec& spec, Bandwidth payload, const LimitId& id);

/// The resource that a hop is in its direction; nullopt between NVSwitches.
std::optional<ResourceId> resource_of(const Graph& graph, const Hop& hop);
/// What it carries in a second and direction; nullopt: it limits nothing. PCIe links and ports
/// count headers, too; the others payload alone. `stage`: whose hop it is.
std::optional<Bandwidth> capacity_of(const Hardware& hardware, const Stage& stage, const Hop& hop);

/// What PCIe (or C2C) makes of a stage whose engine reads or writes memory: links, headers, window
/// or credits, root complex, both ends' limits, latency.
void work_by_dma(FlowContext& flow, StageSpec& spec, const Stage& stage);
/// The same of a stage between two GPUs over NVLink.
void work_over_nvlink(FlowContext& flow, StageSpec& spec, const Stage& stage);
/// Picks one of the two by the stage's hops.
void work_on_hops(FlowContext& flow, StageSpec& spec, const Stage& stage);

}  // namespace gdr::sim
