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
    double low = 0;  ///< the prediction with this parameter at one end and all others unchanged
    double high = 0;
    bool estimate = false;
  };
  std::vector<Contribution>
      contributions;  ///< those that change it by least_contribution or more, largest first
};
/// The accuracy of rates from sim::Simulator::run_near.
inline constexpr double least_contribution = 1.0 / 60;

/// `predict` returns one or more numbers for a machine. Each uncertain parameter of the models that
/// it uses (Hardware::models_asked) is set to its low and its high while the others stay. The
/// logarithmic deviations and the model's own error add up as the root of the sum of their squares,
/// since the parameters are independent. One range per number.
std::vector<Range> range_of(const Hardware& hardware,
                            const std::function<std::vector<double>(const Hardware&)>& predict);

/// How far latency (us) and bandwidth (GB/s) of a prediction may be off.
struct PredictionRange {
  Range latency;
  Range bandwidth;
};

/// Runs the prediction with each uncertain parameter of its components at both ends. No bandwidth
/// exceeds the signalling rate of the ports.
PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options);

/// An estimate without a range may be off by this share.
inline constexpr double estimate_spread = 0.2;
/// The error that remains when all parameters are known: arbitration, flow control, timers,
/// settings that the source leaves out. With 8 %, four in five of the calibration cases lie in
/// their range; figures to which nothing was fitted are taken to be twice as far off.
inline constexpr double model_spread = 0.15;

}  // namespace gdr::study
