#include "sim/engine/windows.hpp"

#include <algorithm>
#include <limits>

namespace gdr::sim {
namespace {

/// Bytes that may be under way in the whole flow. Where they hold the flow back they set the period
/// of the arrivals; where they return in larger units (whole messages, batches of completions),
/// those units do.
std::uint64_t window_over_all(const FlowSpec& spec) {
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t pieces = 0;
  for (const WindowSpec& window : spec.windows) {
    if (window.first == 0 && window.last >= spec.completion_stage)
      least = std::min(least, window.limit.count);
    pieces = std::max(pieces, window.quantum.count);
  }
  return std::max(least, pieces);
}

}  // namespace

std::uint64_t period_of(const FlowSpec& spec, std::uint64_t unit) {
  const std::uint64_t window = window_over_all(spec);
  return window <= unit * 4096 ? window : unit * 128;
}

std::uint64_t pieces_begun(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes) {
  const std::uint64_t message = spec.message.count;
  const std::uint64_t granule = std::min(spec.stages[stage].granule.count, message);
  return bytes / message * ((message + granule - 1) / granule) +
         (bytes % message + granule - 1) / granule;
}

std::uint64_t pieces_done(const FlowSpec& spec, std::size_t stage, std::uint64_t bytes) {
  const std::uint64_t message = spec.message.count;
  const std::uint64_t granule = std::min(spec.stages[stage].granule.count, message);
  return bytes / message * ((message + granule - 1) / granule) + bytes % message / granule;
}

}  // namespace gdr::sim
