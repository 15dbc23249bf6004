#pragma once

#include <string>
#include <vector>

#include "src/common/json.hpp"
#include "src/study/ask.hpp"

namespace gdr::report {

/// The questions of `gdr predict` and their answers: paths in order, sizes in order within a path.
struct Predictions {
  const Hardware& hardware;
  const Verdict& verdict;
  std::string from;
  std::string to;
  std::string operation;
  sim::Options options;
  std::vector<study::Answer> answers;  ///< predicted
  std::vector<study::Answer> refused;  ///< one for each path

  [[nodiscard]] bool ranges() const { return !answers.empty() && answers.front().range; }
};

std::string to_text(const Predictions& predictions);
json::Value to_json(const Predictions& predictions);
std::string to_csv(const Predictions& predictions);

/// "gdr: not possible: GPUs and NICs cannot...": for text and standard error.
std::string refusal_text(const study::Answer& answer, const Verdict& verdict);

/// Transfers that run together: `gdr predict --flows`.
struct FlowPredictions {
  const Hardware& hardware;
  std::vector<sim::TimedTransfer> flows;
  std::vector<sim::Prediction> predictions;  ///< one for each flow
};

std::string to_text(const FlowPredictions& together);
json::Value to_json(const FlowPredictions& together);
std::string to_csv(const FlowPredictions& together);

}  // namespace gdr::report
