#pragma once

#include <vector>

#include "sim/flow/resources.hpp"
#include "sim/flow/scenario.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::sim {

/// How a transfer is driven.
struct Drive {
  int depth = 128;  ///< messages under way (posted and not completed) of each queue pair
  int queue_pairs = 1;
  std::uint64_t messages = 1;  ///< 0: without end
  Duration start{};
  int completion_every =
      1;  ///< messages per completion (perftest's cq-mod); more than the depth counts as the depth
  std::uint64_t granules =
      0;  ///< most pieces per message, to make many flows at once affordable; 0: pieces of the MTU
};

/// A single message on one queue pair, with no other traffic.
inline constexpr Drive one_message{.depth = 1};

/// What the flow costs beside time, per payload byte. It follows from the stages and does not
/// depend on the rate.
struct Costs {
  double host_memory_passes = 0;  ///< logical reads and writes of host memory
  double dram_bytes = 0;          ///< of these, what reaches DRAM after caches
  double pcie_bytes = 0;          ///< on all PCIe links, headers and read requests included
  double cpu_seconds = 0;         ///< core time of all hosts together
};

/// Turns transfer plans into a scenario: resources with capacities, stages with work and latencies,
/// windows.
class ScenarioBuilder {
 public:
  explicit ScenarioBuilder(const Hardware& hardware) : hardware_(&hardware) {}

  /// Adds a flow; several flows share what they have in common.
  void add(const TransferPlan& plan, const Drive& drive);
  [[nodiscard]] const std::vector<Costs>& costs() const { return costs_; }
  /// The finished scenario.
  [[nodiscard]] Scenario take();

 private:
  const Hardware* hardware_;
  Resources resources_;
  std::vector<FlowSpec> flows_;
  std::vector<Costs> costs_;
};

}  // namespace gdr::sim
