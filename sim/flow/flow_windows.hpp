#pragma once

#include "sim/flow/context.hpp"

namespace gdr::sim {

/// Completes a flow whose stages exist: sets when the initiator's completion comes and what bounds
/// the bytes under way.
void add_windows(FlowContext& flow);

}  // namespace gdr::sim
