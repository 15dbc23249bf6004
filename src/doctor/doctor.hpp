#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/doctor/checks.hpp"
#include "src/topology/topology.hpp"

namespace gdr::doctor {

/// An input that another command reads, wholly or in part.
struct Elsewhere {
  std::string input;    ///< its name
  std::string what;     ///< "a log of NCCL"
  std::string command;  ///< "gdr nccl --log nccl.log"
};

struct Report {
  std::vector<Check>
      checks;  ///< problems first, errors before warnings; then what is unknown; then what is fine
  std::optional<Topology> topology;            ///< where the inputs show devices
  std::map<std::string, std::string> missing;  ///< what a capture could not read
  std::vector<Elsewhere> elsewhere;            ///< inputs for other commands
};

/// Checks what the inputs (captures, listings, logs) say: their facts and, if they show devices,
/// the findings of the verdict on their topology. A problem that both find is listed once. Throws
/// InputError when an input is not text or is a broken capture.
Report examine(const std::vector<NamedText>& inputs, const ModelLibrary& models);

}  // namespace gdr::doctor
