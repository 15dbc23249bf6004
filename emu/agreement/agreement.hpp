#pragma once

#include <string>
#include <utility>
#include <vector>

#include "emu/agreement/observation.hpp"
#include "src/datapath/data_path.hpp"

namespace gdr::agreement {

/// An observer, and how many bytes it saw.
struct Witness {
  std::string by;
  Bytes bytes;
  bool operator==(const Witness&) const = default;
};

/// A stage of the plan, or bytes that it has no stage for (planned 0).
struct Row {
  std::string mover;
  std::string from;
  std::string to;
  Bytes planned;
  std::vector<Witness> observed;  ///< empty: nothing can observe it; not equal
  std::vector<std::pair<std::string, std::string>>
      hops{};  ///< of the stage; not observed: each carried what the mover moved
  [[nodiscard]] bool equal() const;
};

/// A plan and what was observed. Every count of a witness is in a row.
struct ByteAudit {
  std::vector<Row> stages;
  /// One row per host: reads and writes of its memory, added up from the other rows.
  std::vector<Row> host_memory;
  std::vector<Row> beside;  ///< what the plan has no stage for
  [[nodiscard]] bool equal() const;
};

/// Compares what was observed with the stages of a transfer between GPUs of two hosts, by gdr,
/// staged or tcp.
ByteAudit audit(const Graph& graph, const TransferPlan& plan, const Observation& observed);

}  // namespace gdr::agreement
