#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

/// Completes a flow whose stages are made: when the initiator's completion comes, and what bounds
/// the bytes that are under way.
void add_windows(FlowContext& flow);

}  // namespace gdr::sim
