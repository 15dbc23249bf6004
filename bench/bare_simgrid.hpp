#pragma once

#include <cstdint>

namespace gdr::bench {

/// What a SimGrid user would write: one actor per flow, which sends granule after granule over its
/// own link and a shared one. Returns the number of communications. Needs its own process (SimGrid
/// has one engine per process).
std::uint64_t bare_simgrid(int flows, int granules_a_flow);

}  // namespace gdr::bench
