#pragma once

#include <string>
#include <vector>

#include "emu/agreement/agreement.hpp"
#include "src/common/json.hpp"

namespace gdr::report {

/// One transfer of `gdr emulate --compare`.
struct ComparedPath {
  TransferPlan plan;
  agreement::Observation observed;
  agreement::ByteAudit audit;
  std::string failure;  ///< why nothing can be compared; empty if it can
  [[nodiscard]] bool equal() const { return failure.empty() && audit.equal(); }
};
/// A path of "all" that the topology does not allow.
struct SkippedPath {
  std::string path;
  std::string reason;
};

/// Tables of at most 80 columns, one line per stage, and a last line that says whether all is
/// equal, or what is not.
std::string compared_to_text(const Graph& graph, const std::vector<ComparedPath>& paths,
                             const std::vector<SkippedPath>& skipped);
/// docs/emulation.md describes the members.
json::Value compared_to_json(const Graph& graph, const std::vector<ComparedPath>& paths,
                             const std::vector<SkippedPath>& skipped);

}  // namespace gdr::report
