#pragma once

#include "sim/flow/build.hpp"

namespace gdr::sim {

/// What a flow is made from, and the part of it that exists so far.
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

/// How much of the stage moves at once in the simulation: the plan's piece, or several of them
/// joined where this does not change the result.
Bytes piece_of(const FlowContext& flow, const Stage& stage);

/// Units per payload byte of this flow. A small transfer does not fill its packet, so its share of
/// headers is larger.
double units_per_byte(const FlowContext& flow, const StageSpec& spec);

/// Makes the stage use a resource, with `units_per_byte` of work per byte.
void use(FlowContext& flow, StageSpec& spec, std::size_t resource, double units_per_byte);

/// Limits the stage to `payload` per second, headers not counted; the least of several limits
/// counts.
void limit(const FlowContext& flow, StageSpec& spec, Bandwidth payload, const LimitId& id);

/// The resource that a hop is in its direction; nullopt between NVSwitches.
std::optional<ResourceId> resource_of(const Graph& graph, const Hop& hop);
/// What a hop of `stage` carries per second and direction; nullopt: it limits nothing. PCIe links
/// and ports count headers, too; the others payload alone.
std::optional<Bandwidth> capacity_of(const Hardware& hardware, const Stage& stage, const Hop& hop);

/// Fills in a stage whose engine reads or writes memory over PCIe (or C2C): links, headers, window
/// or credits, root complex, both ends' limits, latency.
void work_by_dma(FlowContext& flow, StageSpec& spec, const Stage& stage);
/// The same for a stage between two GPUs over NVLink.
void work_over_nvlink(FlowContext& flow, StageSpec& spec, const Stage& stage);
/// Calls one of the two, depending on the stage's hops.
void work_on_hops(FlowContext& flow, StageSpec& spec, const Stage& stage);

}  // namespace gdr::sim
