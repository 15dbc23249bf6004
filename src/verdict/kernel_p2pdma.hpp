#pragma once

#include "src/hardware/hardware.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {

/// Linux' rule (drivers/pci/p2pdma.c): direct below a common bridge when no bridge on either side
/// redirects; otherwise through the host bridge when the CPU is an AMD Zen or the host bridges are
/// on the kernel's list; otherwise refused.
KernelP2pdma kernel_p2pdma(const Hardware& hardware, const PeerRoutes& routes, DeviceId a,
                           DeviceId b);

}  // namespace gdr
