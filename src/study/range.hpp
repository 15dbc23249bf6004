#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/predict.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::study {

/// How far a prediction may be off, from the ranges of the parameters that it rests on.
struct Range {
  double low = 0;
  double high = 0;
  struct Contribution {
    std::string parameter;  ///< "models/gpu/k40.json copy_bandwidth"
    double low = 0;  ///< the prediction with this parameter at one end and all others as they are
    double high = 0;
    bool estimate = false;
  };
  std::vector<Contribution>
      contributions;  ///< those that move it by least_contribution or more, largest first
};
/// A rate of sim::Simulator::run_near is no better than this.
inline constexpr double least_contribution = 1.0 / 60;

/// `predict` gives one or more numbers for a machine. Each uncertain parameter of the models that
/// it asks for (Hardware::models_asked) goes to its low and its high while the others stay; the
/// deviations add up as the root of the sum of their squares (in the logarithm), since the
/// parameters are independent, together with the model's own error. One range per number.
std::vector<Range> range_of(const Hardware& hardware,
                            const std::function<std::vector<double>(const Hardware&)>& predict);

/// How far latency (us) and bandwidth (GB/s) of a prediction may be off.
struct PredictionRange {
  Range latency;
  Range bandwidth;
};

/// Runs the prediction with each uncertain parameter of its components at both ends. No bandwidth
/// is above what the ports signal.
PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options);

/// An estimate that states no range may be off by so much.
inline constexpr double estimate_spread = 0.2;
/// What is left where all parameters are known: arbitration, flow control, timers, what the source
/// does not tell. For four in five of the calibration cases to lie in their range it must be 8 %;
/// figures that nothing was fitted to are taken to be twice as far off.
inline constexpr double model_spread = 0.15;

}  // namespace gdr::study
