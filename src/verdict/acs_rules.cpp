#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

/// Those of the bits set that redirect: "RR+CR".
std::string redirecting_bits(Acs acs) {
  return to_string(Acs{static_cast<std::uint16_t>(
      acs.bits & (Acs::request_redirect | Acs::completion_redirect | Acs::egress_control))});
}

void unknown_port(const PairContext& pair, DeviceId port, bool decides, RuleNotes& notes) {
  notes.push_back(
      {"acs-unknown", decides ? Effect::unknown : Effect::informs, port_place(pair, port, ""),
       "The file does not give the ACS control bits of these ports, which decide whether peer "
       "traffic stays inside the switch.",
       std::string(pair.host().virtual_machine.value_or(false) ? "On the host, read" : "Read") +
           " them as root: lspci -vvv, lines ACSCtl, of the bridges above the devices (RR is "
           "ReqRedir, CR CmpltRedir, EC "
           "EgressCtrl)."});
}

std::string redirect_remedy(const PairContext& pair, Acs acs) {
  if (pair.initiator_device().ats.value_or(false) && !acs.has(Acs::direct_translated))
    return "Set DT (Direct Translated P2P) on the port, so that the ATS-translated requests of the "
           "NIC go straight to the GPU, "
           "or clear the bits.";
  if (pair.host().virtual_machine.value_or(false))
    return "On the host, set DT (Direct Translated P2P) on the port and switch on ATS in the NIC; "
           "a guest cannot change it.";
  return "Clear the bits: setpci -s PORT ECAP_ACS+0x6.w=0 as root after each boot, or the kernel "
         "parameter "
         "pci=disable_acs_redir=PORT.";
}

/// Payload bandwidth of the links between the switch where the pair meets and the root port;
/// nullopt: not known.
std::optional<Bandwidth> uplink_room(const PairContext& pair) {
  std::optional<Bandwidth> room;
  for (const Hop& hop : pair.graph().route_to_host_bridge(pair.routes.turn)) {
    const std::optional<PcieLink> link = pair.hardware->link(hop.edge).value;
    if (!link) continue;
    const Bandwidth here = pair.hardware->payload_rate(*link, pair.max_payload);
    room = std::min(room.value_or(here), here);
  }
  return room;
}

/// A port whose bits redirect. `harms`: they send this pair's own traffic up to the root port.
void redirecting_port(const PairContext& pair, DeviceId port, Acs acs, bool harms,
                      RuleNotes& notes) {
  const std::optional<Bandwidth> room = harms ? uplink_room(pair) : std::nullopt;
  const bool slow = room && *room < pair.could_carry * 0.5;
  std::string reason =
      "ACS at the port sends peer traffic up to the root port and back instead of across the "
      "switch";
  if (room)
    reason += fmt::format(
        ": it takes the uplink both ways, whose {} all traffic of the switch then shares",
        gbps(*room));
  if (slow)
    reason += fmt::format(", less than half of the {} that the devices could carry",
                          gbps(pair.could_carry));
  if (!harms) reason += ", but not what the pair's initiator sends";
  notes.push_back({"acs-redirect", slow ? Effect::slows : (harms ? Effect::costs : Effect::informs),
                   port_place(pair, port, redirecting_bits(acs)), reason + ".",
                   redirect_remedy(pair, acs)});
}

}  // namespace

void acs_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.over_nvlink() || pair.tree_hidden || !pair.routes.parts_at_switch) return;
  const bool undecided = !pair.routes.redirected().known();
  for (const DeviceId side : {pair.initiator, pair.target}) {
    const std::vector<DeviceId> ports = ports_below(pair.graph(), side, pair.routes.turn);
    for (const DeviceId port : ports) {
      const bool deciding = port == ports.back();
      const Fact<bool>& redirected = side == pair.initiator ? pair.routes.requests_redirected
                                                            : pair.routes.completions_redirected;
      const Fact<Acs> acs = pair.hardware->port_acs(port);
      if (!acs.known()) unknown_port(pair, port, deciding && undecided, notes);
      else if (acs.value.redirects() && deciding && !redirected.known())
        notes.push_back({"acs-unknown", undecided ? Effect::unknown : Effect::informs,
                         port_place(pair, port, redirecting_bits(acs)),
                         "DT lets ATS-translated requests pass this port directly, and the file "
                         "does not say whether the device "
                         "has ATS switched on.",
                         "Read it as root: lspci -vvv of the device, line ATSCtl."});
      else if (acs.value.redirects() &&
               !(deciding && side == pair.initiator && pair.routes.direct_translated))
        redirecting_port(pair, port, acs, deciding && redirected.value, notes);
    }
  }
}

}  // namespace gdr
