#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/common/terminal_text.hpp"
#include "src/doctor/checks.hpp"

namespace gdr::doctor {
namespace {

bool link_local(const Gid& gid) { return gid.address.starts_with("fe80"); }

/// The RoCE v2 entry with the port's own address, which applications should use.
const Gid* best_gid(const Facts& facts, const std::string& device) {
  for (const bool local : {false, true})
    for (const Gid& gid : facts.gids)
      if (gid.device == device && gid.type == "v2" && link_local(gid) == local) return &gid;
  return nullptr;
}

bool is_ethernet(const Facts& facts, const std::string& device) {
  const auto layer = facts.layers.find(device);
  if (layer != facts.layers.end()) return layer->second == "Ethernet";
  const bool roce = std::any_of(facts.gids.begin(), facts.gids.end(), [&](const Gid& gid) {
    return gid.device == device && (gid.type == "v1" || gid.type == "v2");
  });
  return roce || (facts.layers.contains("*") && facts.layers.at("*") == "Ethernet");
}

void unreadable(const Facts& facts, Checks& checks) {
  std::vector<std::string> entries;
  for (const Gid& gid : facts.gids)
    if (gid.type.empty()) entries.push_back(fmt::format("{} index {}", gid.device, gid.index));
  const bool abort = says(facts, "ncclIbRoceGetVersionNum");
  if (entries.empty() && !abort) return;
  if (entries.size() > 4) entries.resize(4);
  checks.push_back(
      {"gid-of-another-namespace", State::problem, abort ? Severity::error : Severity::warning,
       fmt::format("The GID table has entries whose type cannot be read{}: they belong to other "
                   "network namespaces (macvlan, containers), and "
                   "NCCL before 2.26 gives up on the first of them.",
                   entries.empty() ? "" : fmt::format(" ({})", fmt::join(entries, ", "))),
       "Use NCCL 2.26 or newer, or set NCCL_IB_GID_INDEX to the RoCE v2 entry of your own "
       "interface."});
}

void chosen_index(const Facts& facts, Checks& checks) {
  const auto set = facts.settings.find("NCCL_IB_GID_INDEX");
  std::vector<std::string> wrong;
  std::vector<std::string> better;
  std::vector<int> indices;
  for (const std::string& device : facts.rdma_devices) {
    if (!is_ethernet(facts, device)) continue;
    const Gid* best = best_gid(facts, device);
    if (best == nullptr) continue;
    indices.push_back(best->index);
    better.push_back(fmt::format("{}: index {} ({}{}{})", device, best->index, best->address,
                                 best->network.empty() ? "" : ", ", best->network));
    const auto index = set != facts.settings.end() ? text::whole_int(set->second) : std::nullopt;
    if (!index || *index < 0) continue;
    const auto found = std::find_if(facts.gids.begin(), facts.gids.end(), [&](const Gid& gid) {
      return gid.device == device && gid.index == *index;
    });
    if (found == facts.gids.end()) wrong.push_back(fmt::format("{} has no GID {}", device, *index));
    else if (found->type != "v2")
      wrong.push_back(
          fmt::format("GID {} of {} is {}", *index, device,
                      found->type.empty() ? "another namespace's" : "RoCE " + found->type));
  }
  if (better.empty()) return;
  std::sort(indices.begin(), indices.end());
  const bool differ = !indices.empty() && indices.front() != indices.back();
  if (!wrong.empty())
    checks.push_back(
        {"gid-index-wrong", State::problem, Severity::error,
         fmt::format("NCCL_IB_GID_INDEX={}: {}.", set->second, fmt::join(wrong, "; ")),
         fmt::format("Use the RoCE v2 entry of the port's own address: {}. The number differs "
                     "between hosts and containers; NCCL 2.21 and newer finds the entry by "
                     "itself when the variable is not set.",
                     fmt::join(better, "; "))});
  else
    checks.push_back(
        {"gid-index", State::fine, Severity::note,
         fmt::format(
             "RoCE v2 entries: {}{}.", fmt::join(better, "; "),
             differ ? "; the index differs between devices, so one number cannot serve all" : ""),
         ""});
}

void without_gids(const Facts& facts, Checks& checks) {
  std::vector<std::string> empty;
  for (const std::string& device : facts.rdma_devices)
    if (facts.gids_listed && std::none_of(facts.gids.begin(), facts.gids.end(),
                                          [&](const Gid& gid) { return gid.device == device; }))
      empty.push_back(device);
  std::vector<std::string> usable;
  for (const std::string& device : facts.rdma_devices)
    if (std::find(empty.begin(), empty.end(), device) == empty.end()) usable.push_back(device);
  if (!empty.empty() && !usable.empty())
    checks.push_back(
        {"hca-without-gid", State::problem, Severity::error,
         fmt::format("{} can be seen but {} no GID here: a container sees all devices of the host "
                     "but can use only those whose interface it has.",
                     fmt::join(empty, ", "), empty.size() == 1 ? "has" : "have"),
         fmt::format("Set NCCL_IB_HCA={} (UCX_NET_DEVICES for UCX).", fmt::join(usable, ","))});
  else if (!empty.empty() || (facts.gids_listed && facts.gids.empty()))
    checks.push_back(
        {"no-gid", State::problem, Severity::error,
         "No RDMA device has a GID in this network namespace: queue pairs cannot be connected.",
         "Give the namespace an interface of the RDMA device (rdma system set netns exclusive, or "
         "an SR-IOV or macvlan interface with an IP address)."});
  if (facts.networks_listed && facts.networks.empty())
    checks.push_back(
        {"no-network-of-hca", State::problem, Severity::error,
         "No network interface belongs to an RDMA device here (ibdev2netdev lists none).",
         "Give the container the interface of the RDMA device, with an IP address; without it the "
         "device has no GID."});
}

}  // namespace

void gid_checks(const Facts& facts, Checks& checks) {
  unreadable(facts, checks);
  chosen_index(facts, checks);
  without_gids(facts, checks);
  const bool ethernet =
      facts.layers.contains("*")
          ? facts.layers.at("*") == "Ethernet"
          : std::any_of(facts.rdma_devices.begin(), facts.rdma_devices.end(),
                        [&](const std::string& d) { return is_ethernet(facts, d); });
  if (says(facts, "ibv_modify_qp") && ethernet)
    checks.push_back({"roce-needs-gid-index", State::problem, Severity::warning,
                      "ibv_modify_qp fails on an Ethernet port: RoCE needs a global route header, "
                      "so the program must set is_global and sgid_index.",
                      "Give the program the index of a RoCE v2 GID; try it on SoftRoCE first (gdr "
                      "emulate), which refuses it as well."});
}

}  // namespace gdr::doctor
