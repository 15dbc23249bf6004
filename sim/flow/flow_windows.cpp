#include "sim/flow/flow_windows.hpp"

#include <algorithm>

#include "sim/flow/post.hpp"

namespace gdr::sim {
namespace {

/// The index in the flow of the plan's first stage with this mover; nullopt: none.
std::optional<std::size_t> first_of(const FlowContext& flow, Mover mover) {
  const auto& stages = flow.flow.stages;
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (stages[i].plan_stage != StageSpec::no_plan_stage &&
        flow.plan.stages[stages[i].plan_stage].mover == mover)
      return i;
  return std::nullopt;
}

std::size_t of_plan(const FlowContext& flow, std::size_t plan_stage) {
  std::size_t at = 0;
  while (flow.flow.stages[at].plan_stage != plan_stage) ++at;
  return at;
}

/// The index in the flow of the first step that starts a stage of the plan.
std::size_t start_of_plan(const FlowContext& flow, std::size_t plan_stage) {
  std::size_t at = of_plan(flow, plan_stage);
  while (at > 0 && flow.flow.stages[at - 1].plan_stage == StageSpec::no_plan_stage) --at;
  return at;
}

void complete_by_rdma(FlowContext& flow, std::size_t wire) {
  const TransferPlan& plan = flow.plan;
  const auto acknowledge = [&](DeviceId nic) {
    return flow.hardware.nic(flow.graph().device(nic)).acknowledge_latency.value;
  };
  if (plan.transfer.operation == Operation::read) {
    flow.flow.completion_latency =
        completion_of(flow, *plan.to_nic, plan.transfer.to.host, plan.to_numa);
    return;
  }
  flow.flow.completion_stage = wire;
  flow.flow.completion_latency =
      acknowledge(*plan.to_nic) + flow.hardware.wire_latency() + acknowledge(*plan.from_nic) +
      completion_of(flow, *plan.from_nic, plan.transfer.from.host, plan.from_numa);
}

/// Sets the stage whose end completes a message, and how long the initiator takes to learn of it.
void set_completion(FlowContext& flow) {
  flow.flow.completion_stage = flow.flow.stages.size() - 1;
  const Stage& last = flow.plan.stages.back();
  if (const auto sent = first_of(flow, Mover::socket_copy)) {
    flow.flow.completion_stage = *sent;  // a send returns when the kernel has the bytes
  } else if (const auto wire = first_of(flow, Mover::wire)) {
    complete_by_rdma(flow, *wire);
  } else if (last.mover == Mover::copy_engine) {
    flow.flow.completion_latency = flow.hardware.gpu(last.engine).copy_completion_latency.value;
  }
}

/// Depth counts messages: a stage that starts buffer by buffer must not start the next message when
/// only a buffer of this one has arrived. (A message alone has no next one.)
WindowSpec queue_depth(const FlowContext& flow) {
  const FlowSpec& spec = flow.flow;
  const auto depth = static_cast<std::uint64_t>(flow.drive.depth) *
                     static_cast<std::uint64_t>(flow.drive.queue_pairs);
  const bool sockets = first_of(flow, Mover::socket_copy).has_value();
  WindowSpec window{.id = {WindowKind::queue_depth, depth},
                    .last = sockets ? spec.stages.size() - 1 : spec.completion_stage,
                    .limit = flow.size() * depth,
                    .return_latency = spec.completion_latency};
  const auto together = static_cast<std::uint64_t>(flow.drive.completion_every);
  if (together > 1 || (flow.drive.messages != 1 && !spec.stages.front().whole_message))
    window.quantum = flow.size() * std::min(depth, together);
  return window;
}

/// A message that needs several buffers shares none of them; messages smaller than a buffer share
/// one. A buffer at the receiving host counts as free when the sender knows that it is.
WindowSpec staging_buffers(const FlowContext& flow, const Ring& ring) {
  const bool far = flow.graph().vertex(ring.memory).host != flow.plan.transfer.from.host;
  WindowSpec window{
      .id = {WindowKind::staging_buffers},
      .first = far ? of_plan(flow, ring.first) : start_of_plan(flow, ring.first),
      .last = of_plan(flow, ring.last),
      .limit = ring.size * ring.count,
      .return_latency = far ? flow.hardware.wire_latency() : flow.flow.completion_latency};
  if (flow.size() >= ring.size &&
      flow.flow.stages[window.first].granule == flow.plan.stages[ring.first].buffer)
    window.pieces = ring.count;
  return window;
}

void add_network_windows(FlowContext& flow, std::size_t wire) {
  FlowSpec& spec = flow.flow;
  const Stage& stage = flow.plan.stages[spec.stages[wire].plan_stage];
  const NicModel& sender = flow.hardware.nic(stage.from);
  const auto queue_pairs = static_cast<std::uint64_t>(flow.drive.queue_pairs);
  const Bytes piece = spec.stages[wire].granule;
  spec.windows.push_back({.id = {WindowKind::nic_buffer},
                          .first = first_of(flow, Mover::nic_read).value_or(wire),
                          .last = wire,
                          .limit = std::max(flow.hardware.nic_buffer(stage.from), piece * 8)});
  if (stage.protocol == Protocol::tcp) {
    std::size_t received = wire;
    while (spec.stages[received].step.kind != StepKind::socket_receive) ++received;
    spec.windows.push_back(
        {.id = {WindowKind::socket_buffers},
         .first = *first_of(flow, Mover::socket_copy),
         .last = received,
         .limit = stated(flow.hardware.software("linux"), &SoftwareModel::tcp_window, "tcp_window"),
         .return_latency = flow.hardware.wire_latency()});
    return;
  }
  spec.windows.push_back(
      {.id = {WindowKind::queue_pair},
       .first = wire,
       .last = *first_of(flow, Mover::nic_write),
       .limit = std::max(sender.queue_pair_window.value * queue_pairs, piece * 2),
       .return_latency = spec.completion_latency});
  if (flow.plan.transfer.operation == Operation::read)
    spec.windows.push_back(
        {.id = {WindowKind::rdma_reads},
         .last = spec.stages.size() - 1,
         .limit = flow.size() * static_cast<std::uint64_t>(sender.max_read_atomic.value *
                                                           flow.drive.queue_pairs)});
}

}  // namespace

void add_windows(FlowContext& flow) {
  set_completion(flow);
  flow.flow.windows.push_back(queue_depth(flow));
  if (const auto wire = first_of(flow, Mover::wire)) add_network_windows(flow, *wire);
  for (const Ring& ring : flow.plan.rings) flow.flow.windows.push_back(staging_buffers(flow, ring));
}

}  // namespace gdr::sim
