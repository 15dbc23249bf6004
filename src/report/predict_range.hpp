#pragma once

#include <string>
#include <vector>

#include "src/common/json.hpp"
#include "src/study/ask.hpp"

namespace gdr::report {

/// A table of answers, all with ranges, and the estimates that move the largest and the
/// smallest message most.
std::string ranges_to_text(const std::vector<study::Answer>& answers);

/// Adds "latency_range_us", "bandwidth_range_GBps" and "estimates" to a result.
void put_range(json::Value& result, const study::PredictionRange& range);

}  // namespace gdr::report
