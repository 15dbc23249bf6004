#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/json.hpp"
#include "src/study/range.hpp"

namespace gdr::cli {

/// How far latency (us) and bandwidth (GB/s) of a prediction may be off.
struct PredictionRange {
  sim::Range latency;
  sim::Range bandwidth;
};

/// Runs the prediction with each uncertain parameter of its components at both ends.
PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options);

/// A table of predictions with their ranges, and the estimates that move the largest and the
/// smallest message most.
std::string ranges_to_text(const std::vector<sim::Prediction>& predictions,
                           const std::vector<PredictionRange>& ranges);

/// Adds "latency_range_us", "bandwidth_range_GBps" and "estimates" to a result.
void put_range(json::Value& result, const PredictionRange& range);

}  // namespace gdr::cli
