#pragma once

#include "sim/flow/scenario.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::sim {

/// The most that something carries, and what it is that carries no more.
struct StageBound {
  Bandwidth bandwidth;  ///< of payload
  Bottleneck by;        ///< monostate: nothing bounds it, and `bandwidth` is 0
};

/// A stage of a flow that has its resources for itself: the least of all that it works on, over the
/// units that a byte is there, and of its own limit.
StageBound bound_of(const Scenario& scenario, const FlowSpec& flow, const StageSpec& stage);

/// The same without the links, ports, memories and root complexes of its hops.
StageBound bound_beside_links(const Scenario& scenario, const FlowSpec& flow,
                              const StageSpec& stage);

/// The bound of large transfers that the initiator, a device with an engine of its own, makes to or
/// from the memory of a GPU of its host: `reads` it, or writes to it. Two GPUs that NVLink joins
/// use it. No simulation.
StageBound bound_of_pair(const Hardware& hardware, DeviceId initiator, DeviceId target, bool reads);

}  // namespace gdr::sim
