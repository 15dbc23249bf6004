#pragma once

#include <string>
#include <vector>

#include "src/common/json.hpp"
#include "src/study/validate.hpp"

namespace gdr::report {

/// `gdr validate`: what was run, and what was not.
struct Validation {
  std::vector<const study::CaseResult*> validation;
  std::vector<const study::CaseResult*> calibration;
  const study::PublishedCases& all;
  bool ranges = true;
};

std::string to_text(const Validation& run);
json::Value to_json(const Validation& run);
/// A self-contained page: a chart of predicted against measured, one table per category, what was
/// left out and why.
std::string to_html(const Validation& run);

}  // namespace gdr::report
