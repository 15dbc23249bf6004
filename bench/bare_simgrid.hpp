#pragma once

#include <cstdint>

namespace gdr::bench {

/// What a SimGrid user would write: one actor a flow that sends granule after granule over its own
/// link and one that all share. Returns the number of communications. Needs a process of its own
/// (SimGrid has one engine a process).
std::uint64_t bare_simgrid(int flows, int granules_a_flow);

}  // namespace gdr::bench
