#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"

namespace gdr::report {

/// A path's granules, for drawing.
struct TracedPath {
  std::string name;  ///< "gdr"
  sim::Timeline timeline;
};

/// Chrome's trace event format (JSON), for Perfetto and chrome://tracing: one process per path, one
/// track per resource and step.
std::string to_trace(const Hardware& hardware, const std::vector<TracedPath>& paths);

/// One bar per step on a common time axis of `width` columns, to fit a terminal.
std::string time_line_text(const Hardware& hardware, const std::vector<TracedPath>& paths,
                           std::size_t width = 80);

}  // namespace gdr::report
