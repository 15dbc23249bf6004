#include <fmt/format.h>

#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

std::string limit_text(const ForwardLimit& limit) {
  if (limit.read && limit.write)
    return fmt::format("reads get at most {} and writes {}", gbps(*limit.read), gbps(*limit.write));
  if (limit.read) return fmt::format("reads get at most {}", gbps(*limit.read));
  if (limit.write) return fmt::format("writes get at most {}", gbps(*limit.write));
  return "its limits are not known";
}

/// The rule's name and a description of the route, for a pair that does not meet below one switch.
struct Crossing {
  std::string rule;
  std::string what;
  std::string remedy;
};

Crossing crossing_of(const PairContext& pair) {
  if (pair.route == PairRoute::socket_link && pair.distance == Distance::sys &&
      pair.host().sockets_known == false && !pair.graph().stated_distance(pair.from, pair.to))
    return {"sockets-unknown",
            "The devices hang below two NUMA nodes, and the file does not say whether these are of "
            "one socket; if not, peer traffic crosses a "
            "socket link",
            "See lscpu for the NUMA nodes of each socket, correct them in \"sockets\" and "
            "\"numa_nodes\" and leave out \"sockets_known\"."};
  if (pair.route == PairRoute::socket_link && pair.distance != Distance::node_or_sys) {
    const std::string link = pair.cpu != nullptr && pair.cpu->socket_link_name
                                 ? pair.cpu->socket_link_name->value + " link"
                                 : "link";
    return {"crosses-sockets", fmt::format("Peer traffic crosses the {} between two sockets", link),
            "Use a pair below one socket, best below one PCIe switch, or move one card to a slot "
            "of the other's socket."};
  }
  const std::string remedy =
      "Use a pair below one PCIe switch, or move one card to a slot below the other's switch.";
  if (pair.distance == Distance::phb_or_node)
    return {"through-host-bridge",
            "Peer traffic goes through the CPU's root complex; the file does not say by which host "
            "bridges",
            remedy};
  if (pair.distance == Distance::node_or_sys)
    return {
        "numa-unknown",
        "Peer traffic goes through the CPU from one host bridge to another, and the file does not "
        "say whether these are of one NUMA node",
        "Import the output of lspci -vvv or nvidia-smi topo -m as well: both show the NUMA nodes."};
  if (pair.distance == Distance::phb)
    return {"through-host-bridge",
            "Peer traffic goes through the CPU's root complex, inside one host bridge", remedy};
  return {"different-host-bridges",
          "Peer traffic goes through the CPU from one host bridge to another", remedy};
}

/// True when the CPU forwards on this route; nullopt when the file does not say which host bridges
/// are used.
std::optional<bool> forwards(const PairContext& pair) {
  if (pair.cpu->p2p_forwarding.value == "all") return true;
  if (pair.distance == Distance::node_or_sys) return std::nullopt;
  if (pair.route == PairRoute::socket_link) return false;
  if (pair.distance == Distance::phb) return true;
  return pair.distance == Distance::phb_or_node ? std::nullopt : std::optional(false);
}

void forwarding_rule(const PairContext& pair, RuleNotes& notes) {
  const std::optional<bool> forwarded = forwards(pair);
  if (forwarded.value_or(false)) return;
  const CpuModel& cpu = *pair.cpu;
  const bool old = cpu.pcie_generation <= 2;
  notes.push_back(
      {old ? "legacy-ioh" : "root-complex-does-not-forward",
       forwarded ? Effect::blocks : Effect::unknown,
       {},
       fmt::format(
           "{} forwards peer-to-peer traffic only inside one host bridge{}.", cpu.header.title,
           forwarded ? "" : ", and the file does not say whether these two devices share it"),
       old ? "Put both devices below the same I/O hub, best below one PCIe switch; no setting "
             "makes this chipset forward."
           : "Put both devices below one PCIe switch; no setting makes this root complex "
             "forward."});
}

void p2pdma_rule(const PairContext& pair, RuleNotes& notes) {
  if (pair.kernel != KernelP2pdma::refused) return;
  const bool amd = pair.hardware->is_amd_gpu(pair.target);
  notes.push_back({"host-bridge-not-listed",
                   amd ? Effect::blocks : Effect::informs,
                   {},
                   amd ? "Linux' P2PDMA refuses the pair, since its host bridge is not on the "
                         "kernel's list, and amdgpu asks P2PDMA."
                       : "Linux' P2PDMA refuses the pair, since its host bridge is not on the "
                         "kernel's list; NVIDIA's driver does not ask "
                         "P2PDMA, "
                         "NVMe controller memory and other dma-buf users do.",
                   "Use a pair below one PCIe switch without ACS redirection, or a kernel that "
                   "lists this host bridge."});
}

}  // namespace

void wiring_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.over_nvlink()) return;
  if (pair.distance == Distance::unknown) {
    notes.push_back(
        {"place-unknown", Effect::unknown, pairs_place(),
         "What was imported does not show the bridges above these devices, so how they reach each "
         "other is not known.",
         "Import the output of lspci -tv or nvidia-smi topo -m of this machine together with it."});
    return;
  }
  if (pair.tree_hidden) {
    notes.push_back({"vm-hides-topology", Effect::unknown, host_place(),
                     "A virtual machine hides the real PCIe tree: devices that show no common "
                     "switch may share one, so how they "
                     "reach each other is not known.",
                     "Take the tree from the host, or from the provider's NCCL topology file "
                     "(NCCL_TOPO_FILE), and check that."});
    return;
  }
  if (pair.route != PairRoute::pci_switch) {
    const Crossing crossing = crossing_of(pair);
    const ForwardLimit limit = forward_limit(pair);
    const bool slow = limit.least() && *limit.least() < pair.could_carry * 0.5;
    std::string reason = crossing.what;
    if (limit.least()) reason += fmt::format(": {}", limit_text(limit));
    if (slow)
      reason += fmt::format(", less than half of the {} that the devices could carry",
                            gbps(pair.could_carry));
    std::string remedy = crossing.remedy;
    if (pair.kind == PairKind::nvme_gpu)
      remedy =
          "Use a drive below the GPU's own switch; for others GPUDirect Storage may copy through "
          "host memory (gdscheck -p shows it).";
    const bool guess = crossing.rule == "sockets-unknown" || crossing.rule == "numa-unknown";
    if (guess) remedy = crossing.remedy;
    notes.push_back({crossing.rule,
                     !slow   ? Effect::informs
                     : guess ? Effect::unknown
                             : Effect::slows,
                     {},
                     reason + ".",
                     std::move(remedy)});
  }
  const bool root_complex = pair.through_root_complex();
  if (root_complex && pair.cpu == nullptr)
    notes.push_back(
        {"cpu-unknown", Effect::unknown, host_place(),
         "Peer traffic goes through the CPU and the file does not say which CPU it is, so whether "
         "and how fast it "
         "forwards is not known.",
         "Name the CPU's model in \"sockets\" (models/cpu lists them; lscpu shows which it is)."});
  if (root_complex && pair.cpu != nullptr && pair.route != PairRoute::pci_switch)
    forwarding_rule(pair, notes);
  p2pdma_rule(pair, notes);
}

}  // namespace gdr
