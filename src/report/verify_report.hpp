#pragma once

#include <string>
#include <vector>

#include "src/common/json.hpp"
#include "src/study/verify.hpp"

namespace gdr::report {

/// "half the lanes of h0/gpu0 (gen4x8, not gen4x16)"; empty for no change.
std::string condition_text(const study::Condition& condition);
/// What a figure fits, in sentences, and what to look at next.
std::string verdict_text(const study::Fit& fit);
std::string next_text(const study::Fit& fit);

/// `gdr verify`: each figure with the nearest candidates.
std::string to_text(const std::vector<study::Fit>& fits);
json::Value to_json(const std::vector<study::Fit>& fits);

}  // namespace gdr::report
