#pragma once

#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/json.hpp"

namespace gdr::report {

/// The question of `gdr explain` and its answers, path by path.
struct Explanations {
  const Hardware& hardware;
  std::string from;
  std::string to;
  std::vector<sim::Explanation> paths;  ///< at least one
};

std::string to_text(const Explanations& explanations);
json::Value to_json(const Explanations& explanations);

}  // namespace gdr::report
