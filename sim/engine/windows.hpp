#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/flow/scenario.hpp"

namespace gdr::sim {

/// Bytes over which a rate is measured to see whether it is steady: the window over the whole flow,
/// or 128 `unit`s where that window exceeds 4096 of them.
std::uint64_t period_of(const FlowSpec& spec, std::uint64_t unit);

/// The number of pieces that a stage has begun when it has begun `bytes`. No piece spans two
/// messages.
std::uint64_t pieces_begun(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes);
/// The number of pieces that a stage has finished when it has finished `bytes`.
std::uint64_t pieces_done(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes);

}  // namespace gdr::sim
