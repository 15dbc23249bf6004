#pragma once

#include <string>
#include <vector>

#include "src/study/validate.hpp"

namespace gdr::cli {

/// A page of its own: a chart of predicted against measured, a table a category, what was left out
/// and why.
std::string validation_to_html(const std::vector<const sim::CaseResult*>& validation,
                               const std::vector<const sim::CaseResult*>& calibration,
                               const sim::PublishedCases& all);

}  // namespace gdr::cli
