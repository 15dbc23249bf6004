#include <fmt/format.h>

#include "src/common/version.hpp"
#include "src/verdict/rules.hpp"

namespace gdr {

void ordering_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.kind != PairKind::gpu_nic) return;
  const Device& nic = pair.initiator_device();
  const Software& software = pair.host().software;
  const std::string library = pair.hardware->collective_library(pair.target);
  if (nic.relaxed_ordering == true && !software.nccl_version.empty() &&
      version_before(software.nccl_version, "2.8"))
    notes.push_back(
        {"relaxed-ordering-unsafe", Effect::costs, device_place(pair, pair.initiator),
         fmt::format("The NIC writes with relaxed ordering, which {} {} does not expect: data can "
                     "arrive after the "
                     "flag that announces it.",
                     library, software.nccl_version),
         fmt::format("Use {} 2.8 or newer, or set the NIC's PCI_WR_ORDERING back to per_mkey.",
                     library)});
  if (nic.relaxed_ordering != false || pair.cpu == nullptr || pair.tree_hidden ||
      !pair.through_root_complex())
    return;
  const auto& strict = pair.cpu->strict_order_write_bandwidth;
  if (!pair.cpu->relaxed_ordering_needed.value || !strict || strict->value >= pair.could_carry)
    return;
  notes.push_back(
      {"relaxed-ordering-off", Effect::costs, device_place(pair, pair.initiator),
       fmt::format("The NIC writes in strict order, which {} takes at {} at most; the devices "
                   "could carry {}.",
                   pair.cpu->header.title, gbps(strict->value), gbps(pair.could_carry)),
       "Switch relaxed ordering on: in the NIC (mlxconfig PCI_WR_ORDERING) and in the application "
       "(IBV_ACCESS_RELAXED_ORDERING, NCCL_IB_PCI_RELAXED_ORDERING=1)."});
}

}  // namespace gdr
