#include <fmt/format.h>

#include "src/verdict/rules.hpp"

namespace gdr {

void network_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.kind != PairKind::gpu_nic) return;
  const Device& nic = pair.initiator_device();
  if (pair.hardware->nic(pair.initiator).rdma.value != "verbs" ||
      !pair.hardware->runs_ethernet(pair.initiator))
    return;
  if (nic.lossless == false)
    notes.push_back({"roce-lossy", Effect::costs, device_place(pair, pair.initiator),
                     "RoCE runs over Ethernet without PFC or the like: after a lost packet the NIC "
                     "sends everything from it on again, and retries can run out.",
                     "Map the RDMA traffic to a priority with PFC and ECN on NICs and switches, or "
                     "use a NIC with selective "
                     "repeat (ConnectX-5 and newer)."});
  if (nic.gid_type == 1)
    notes.push_back({"gid-not-rocev2", Effect::costs, device_place(pair, pair.initiator),
                     "The GID in use is for RoCE v1, which is not routed and has no DSCP by which "
                     "switches could give it priority.",
                     fmt::format("Choose the RoCE v2 GID of the port's own IP address (show_gids "
                                 "lists them; NCCL_IB_GID_INDEX, or {} "
                                 "2.21 and newer by itself).",
                                 pair.hardware->collective_library(pair.target))});
}

}  // namespace gdr
