#pragma once

#include <string>

#include "src/common/json.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {

/// What `gdr check --format json` prints: format, topology, pairs, best, findings; the pairs of a
/// finding are indices.
json::Value to_json(const Verdict& verdict, const std::string& topology_name);

}  // namespace gdr
