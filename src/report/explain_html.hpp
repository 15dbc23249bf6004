#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/hardware/graph.hpp"
#include "src/report/explain_trace.hpp"

namespace gdr::report {

/// A self-contained page: the paths side by side, and for each the servers' trees with its hops
/// drawn in, its steps on a common time axis, and bytes and times by step and hop.
std::string explanation_to_html(const Hardware& hardware,
                                const std::vector<sim::Explanation>& paths,
                                const std::vector<TracedPath>& traced, const std::string& title);

}  // namespace gdr::report
