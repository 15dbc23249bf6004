#pragma once

#include <string>

#include "src/common/json.hpp"
#include "src/doctor/doctor.hpp"

namespace gdr::report {

// `gdr doctor`: the checklist.
std::string to_text(const doctor::Report& report);
json::Value to_json(const doctor::Report& report);

}  // namespace gdr::report
