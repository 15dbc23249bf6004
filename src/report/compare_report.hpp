#pragma once

#include <string>
#include <vector>

#include "src/common/json.hpp"
#include "src/study/servers.hpp"

namespace gdr::report {

// `gdr compare`: servers side by side.
std::string to_text(const std::vector<study::Column>& columns);
json::Value to_json(const std::vector<study::Column>& columns);
std::string to_html(const std::vector<study::Column>& columns);

}  // namespace gdr::report
