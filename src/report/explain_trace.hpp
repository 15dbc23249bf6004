#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"

namespace gdr::cli {

/// A path's granules, for drawing.
struct TracedPath {
  std::string name;  ///< "gdr"
  sim::Timeline timeline;
};

/// Chrome's trace event format (JSON), for Perfetto and chrome://tracing: a process a path, a track
/// for each resource of each step.
std::string to_trace(const Hardware& hardware, const std::vector<TracedPath>& paths);

/// A bar a step on a common time axis of `width` columns: what fits a terminal.
std::string time_line_text(const Hardware& hardware, const std::vector<TracedPath>& paths,
                           std::size_t width = 80);

}  // namespace gdr::cli
