#pragma once

#include "sim/flow/scenario.hpp"

namespace gdr::sim {

// What holds flows back, from a scenario and the rates that it ran at.

/// Units of work of a stage per payload byte, averaged over a whole piece of this flow.
double units_per_byte(const FlowSpec& flow, const StageSpec& stage);

/// What holds a flow back at its steady rate: the resource, own limit or window that is used most.
Bottleneck bottleneck(const Scenario& scenario, const Outcome& outcome, std::size_t flow);

/// The step of a message that takes longest: what to look at where the queue depth is the limit and
/// messages wait for each other.
struct LongestStep {
  StepId step;
  Duration time;  ///< latency included
};
/// The longest step among the stages that a window spans, for what comes back to it at once.
LongestStep longest_step(const Scenario& scenario, const FlowSpec& flow, const WindowSpec& window);

/// True when the endless stream of `other` surely runs at the rate of `known`, to one part in 60:
/// one flow of the same shape, the same saturated resource or limit, and slack in all that differs.
bool same_rate(const Scenario& known, const Outcome& outcome, const Scenario& other);

}  // namespace gdr::sim
