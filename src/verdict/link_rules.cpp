#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/common/version.hpp"
#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

using namespace literals;

void degraded(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const Device& device = pair.device(id);
  if (pair.hardware->shows_virtual_link(id)) {
    const std::optional<PcieLink> real = pair.hardware->link(id).value;
    notes.push_back({"virtual-link-not-believed", Effect::informs, device_place(pair, id),
                     fmt::format("The link {} is what software shows, not a real one; {}.",
                                 to_string(*device.link),
                                 real ? to_string(*real) + " of the model stands in for it"
                                      : "it is taken not to limit"),
                     "Take the link's width and speed from the host."});
    return;
  }
  if (!device.link || !device.link_capability || *device.link == *device.link_capability) return;
  const Bandwidth now = pair.hardware->payload_rate(*device.link, pair.max_payload);
  const Bandwidth could = pair.hardware->payload_rate(*device.link_capability, pair.max_payload);
  const bool slow = now < pair.could_carry * 0.5;
  notes.push_back(
      {"link-degraded", slow ? Effect::slows : Effect::costs, device_place(pair, id),
       fmt::format("The link runs at {} although both ends can do {}: {} instead of {} of payload.",
                   to_string(*device.link), to_string(*device.link_capability), gbps(now),
                   gbps(could)),
       "Read LnkSta again under load, since idle devices lower their speed; if it stays, reseat "
       "the card, check "
       "riser and BIOS, and retrain the link."});
}

/// Compares a link without a stated capability with what the models of both ends could train.
void below_device(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const Device& device = pair.device(id);
  if (!device.link || device.link_capability || pair.hardware->shows_virtual_link(id)) return;
  const std::optional<PcieLink> best = pair.hardware->trainable_link(id);
  if (!best) return;
  const Bandwidth now = pair.hardware->payload_rate(*device.link, pair.max_payload);
  const Bandwidth could = pair.hardware->payload_rate(*best, pair.max_payload);
  if (now >= could) return;
  Effect effect = now < pair.could_carry * 0.5 ? Effect::slows : Effect::costs;
  if (pair.kind == PairKind::gpu_nic && id == pair.initiator) {
    if (pair.hardware->network_rate(id) > now) return;  // nic-wider-than-slot reports it
    effect = Effect::informs;
  }
  notes.push_back(
      {"link-below-device", effect, device_place(pair, id),
       fmt::format(
           "The link runs at {} where this device could train {}: {} instead of {} of payload.",
           to_string(*device.link), to_string(*best), gbps(now), gbps(could)),
       "Use a slot as wide and as fast as the card; if this one is, reseat the card, check riser, "
       "bifurcation and "
       "BIOS, and read LnkSta of both ends under load."});
}

void above_device(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const Device& device = pair.device(id);
  const std::optional<PcieLink> own = pair.hardware->named_model_link(id);
  if (!device.link || !own || common_link(*device.link, *own) == *device.link) return;
  notes.push_back({"link-above-device", Effect::informs, device_place(pair, id),
                   fmt::format("The file says {}, and the model {} can do {} at most; the verdict "
                               "takes the file's word.",
                               to_string(*device.link), device.model, to_string(*own)),
                   "Check \"link\" and \"model\" in the file."});
}

/// NCCL's table of speeds has 64 GT/s since 2.11.4; it takes unknown speeds for 8 GT/s.
void generation_six(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const std::string& version = pair.host().software.nccl_version;
  const std::optional<PcieLink>& link = pair.device(id).link;
  if (version.empty() || !version_before(version, "2.11.4") || !link || link->generation < 6)
    return;
  const std::string library = pair.hardware->collective_library(pair.target);
  notes.push_back({"gen6-unknown-to-nccl", Effect::informs, device_place(pair, id),
                   fmt::format("{} {} does not know 64 GT/s, which came with 2.11.4, and takes the "
                               "link for one of 8 GT/s.",
                               library, version),
                   fmt::format("Use {0} 2.11.4 or newer, or give {0} a topology file "
                               "(NCCL_TOPO_FILE) that says 32.0 GT/s and twice the "
                               "width.",
                               library)});
}

/// What to do about ports that outrun the slot.
std::string slot_remedy(const PairContext& pair, Bandwidth room) {
  const Device& nic = pair.initiator_device();
  const std::optional<PcieLink> own = pair.hardware->named_model_link(pair.initiator);
  const std::optional<PcieLink> best = pair.hardware->fastest_slot(pair.from.host);
  const bool better =
      !own || !best ||
      pair.hardware->payload_rate(common_link(*own, *best), pair.max_payload) > room;
  if (better) return "Move the NIC to a wider or faster slot, or count on the slot's rate.";
  return fmt::format("Count on the slot's rate{}; no slot of this machine makes the NIC faster.",
                     nic.ports.value_or(1) > 1 ? " for all ports together" : "");
}

void slot(const PairContext& pair, RuleNotes& notes) {
  const Device& nic = pair.initiator_device();
  const auto link = pair.hardware->link(pair.initiator);
  if (!link.value || pair.hardware->shows_virtual_link(pair.initiator)) return;
  // Nothing is known of a slot without a stated link below a port without a named model.
  if (link.basis != Basis::stated &&
      !(link.basis == Basis::model && pair.hardware->fastest_slot(pair.from.host)))
    return;
  // link-degraded reports a link below its capability.
  const PcieLink slot_link = nic.link_capability.value_or(*link.value);
  const Bandwidth room = pair.hardware->payload_rate(slot_link, pair.max_payload);
  const Bandwidth network = pair.hardware->network_rate(pair.initiator);
  if (network <= room) return;
  const int ports = nic.ports.value_or(1);
  const bool one_fits = ports > 1 && network * (1.0 / ports) <= room;
  notes.push_back(
      {"nic-wider-than-slot", room < pair.could_carry * 0.5 ? Effect::slows : Effect::costs,
       device_place(pair, pair.initiator),
       fmt::format(
           "The network ports{} carry {} ({:g} Gb/s), the slot's {} link only {} of payload{}.",
           one_fits ? " together" : "", gbps(network), network.bytes_per_second * 8e-9,
           to_string(slot_link), gbps(room),
           one_fits ? ", which is enough for one port alone" : ""),
       slot_remedy(pair, room)});
}

void read_requests(const PairContext& pair, RuleNotes& notes) {
  const Device& nic = pair.initiator_device();
  const NicModel& model = pair.hardware->nic(pair.initiator);
  if (!nic.max_read_request || *nic.max_read_request >= model.max_read_request.value) return;
  notes.push_back(
      {"small-read-requests", Effect::costs, device_place(pair, pair.initiator),
       fmt::format("The NIC reads in requests of {} where its driver sets {}: fewer bytes are in "
                   "flight at a time, so reads of GPU memory slow down.",
                   to_string(*nic.max_read_request), to_string(model.max_read_request.value)),
       "Set a larger Max_Read_Request_Size: setpci -s NIC CAP_EXP+8.w as root, bits 12 to 14 (5 is "
       "4096 B)."});
}

/// The sender's maximum payload must fit every port that its TLPs pass: a switch or device set to
/// less drops them as malformed. A root complex makes new TLPs.
void payload_mismatch(const PairContext& pair, RuleNotes& notes) {
  if (pair.route != PairRoute::pci_switch) return;
  for (const auto& [sender, receiver] :
       {std::pair(pair.initiator, pair.target), std::pair(pair.target, pair.initiator)}) {
    const auto& sends = pair.device(sender).max_payload;
    if (!sends) continue;
    for (const DeviceId id : links_on_route(pair)) {
      const auto& takes = pair.device(id).max_payload;
      if (id == sender || !takes || *takes >= *sends) continue;
      notes.push_back({"payload-mismatch", Effect::blocks, device_place(pair, id),
                       fmt::format("{} sends TLPs of up to {} and this device is set to {}: it "
                                   "drops larger ones as malformed.",
                                   pair.device(sender).name, to_string(*sends), to_string(*takes)),
                       "Set one maximum payload below the switch: boot with pci=pcie_bus_safe or "
                       "pci=pcie_bus_peer2peer."});
      break;
    }
  }
}

}  // namespace

void link_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.over_nvlink()) return;
  for (const DeviceId id : links_on_route(pair)) {
    degraded(pair, id, notes);
    below_device(pair, id, notes);
    above_device(pair, id, notes);
    if (pair.kind != PairKind::nvme_gpu) generation_six(pair, id, notes);
  }
  payload_mismatch(pair, notes);
  if (pair.kind != PairKind::gpu_nic) return;
  slot(pair, notes);
  read_requests(pair, notes);
}

std::vector<std::pair<std::size_t, RuleNote>> sharing_rules(
    const std::vector<const PairContext*>& pairs) {
  std::map<DeviceId, std::vector<std::size_t>> users;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    if (pairs[i]->over_nvlink() || pairs[i]->tree_hidden) continue;
    for (const DeviceId id : links_on_route(*pairs[i]))
      if (pairs[i]->device(id).kind == DeviceKind::pci_switch) users[id].push_back(i);
  }
  std::vector<std::pair<std::size_t, RuleNote>> notes;
  for (const auto& [uplink, sharing] : users) {
    const PairContext& first = *pairs[sharing.front()];
    const std::optional<PcieLink> link = first.hardware->link(uplink).value;
    if (sharing.size() < 2 || !link) continue;
    const Bandwidth room = first.hardware->payload_rate(*link, first.max_payload);
    // A NIC that serves several GPUs counts once.
    std::map<DeviceId, Bandwidth> by_nic;
    for (const std::size_t i : sharing)
      by_nic[pairs[i]->initiator] = std::max(by_nic[pairs[i]->initiator], pairs[i]->could_carry);
    Bandwidth wanted;
    for (const auto& [nic, rate] : by_nic) wanted.bytes_per_second += rate.bytes_per_second;
    if (wanted <= room) continue;
    for (const std::size_t i : sharing)
      notes.push_back(
          {i,
           {"uplink-shared", pairs[i]->routes.redirected().value ? Effect::costs : Effect::informs,
            device_place(first, uplink),
            fmt::format("{} GPU-NIC pairs in use share this switch's {} uplink of {}; together "
                        "they could carry {}.",
                        sharing.size(), to_string(*link), gbps(room), gbps(wanted)),
            "Give each GPU a NIC below its own switch, and keep ACS from sending their traffic "
            "over the uplink."}});
  }
  return notes;
}

}  // namespace gdr
