#pragma once

#include "sim/flow/scenario.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::sim {

/// The most that something carries, and what limits it.
struct StageBound {
  Bandwidth bandwidth;  ///< of payload
  Bottleneck by;        ///< monostate: nothing bounds it, and `bandwidth` is 0
};

/// The bound of a stage that shares its resources with nothing: the least of its own limit and of
/// each resource's capacity divided by the units that a byte needs there.
StageBound bound_of(const Scenario& scenario, const FlowSpec& flow, const StageSpec& stage);

/// The same, leaving out the links, ports, memories and root complexes of its hops.
StageBound bound_beside_links(const Scenario& scenario, const FlowSpec& flow,
                              const StageSpec& stage);

/// The bound of large transfers in which the initiator, a device with an engine of its own, reads
/// (`reads`) or writes the memory of a GPU of its host. Two GPUs that NVLink joins use it. Runs no
/// simulation.
StageBound bound_of_pair(const Hardware& hardware, DeviceId initiator, DeviceId target, bool reads);

}  // namespace gdr::sim
