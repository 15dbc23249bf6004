#pragma once

#include <string>
#include <vector>

#include "src/study/validate.hpp"

namespace gdr::report {

/// A page of its own: a chart of predicted against measured, a table a category, what was left out
/// and why.
std::string validation_to_html(const std::vector<const study::CaseResult*>& validation,
                               const std::vector<const study::CaseResult*>& calibration,
                               const study::PublishedCases& all);

}  // namespace gdr::report
