#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/flow/scenario.hpp"

namespace gdr::sim {

/// Bytes that a rate is taken over, so that it can be seen to be steady: what the window over the
/// whole flow lets be under way. One of more than a thousand `unit`s is as good as none.
std::uint64_t period_of(const FlowSpec& spec, std::uint64_t unit);

/// Granules that a stage has begun when it has begun so many bytes: messages end in a granule of
/// their own.
std::uint64_t pieces_begun(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes);
/// The same, of those that are whole.
std::uint64_t pieces_done(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes);

}  // namespace gdr::sim
