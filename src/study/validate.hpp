#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/study/published.hpp"

namespace gdr::study {

/// A case that was run. Numbers are in the case's unit: GB/s or us.
struct CaseResult {
  const PublishedCase* published = nullptr;
  double predicted = 0;
  double low = 0;   ///< of the stated range...
  double high = 0;  ///< ...see Range
  sim::Bottleneck bottleneck;
  std::shared_ptr<const Hardware> hardware;  ///< the machine of `bottleneck`, which its name needs
  std::vector<std::string> estimates;        ///< the parameters without a source that change the
                                             ///< prediction most, with their effect

  [[nodiscard]] double error() const { return predicted / published->measured - 1; }
  [[nodiscard]] bool in_range() const {
    return published->measured >= low && published->measured <= high;
  }
};

/// Statistics of the errors of some cases.
struct Errors {
  std::size_t count = 0;
  double median = 0;        ///< of |error|
  double percentile90 = 0;  ///< of |error|
  double in_range = 0;      ///< share of measured values inside the stated range
  double range = 0;         ///< median of high / low
};
Errors errors_of(const std::vector<const CaseResult*>& results);

/// Runs all cases; ranges only when asked for. `after_each` is called after each case. Throws
/// InputError naming the case, also where the verdict blocks a flow of it.
std::vector<CaseResult> run_published(
    sim::Simulator& simulator, const ModelLibrary& models, const std::vector<PublishedCase>& cases,
    bool ranges, const std::function<void()>& after_each = [] {});

}  // namespace gdr::study
