#include "src/verdict/host_verdict.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "src/hardware/nic_choice.hpp"

namespace gdr {
namespace {

using Rule = void (*)(const PairContext&, RuleNotes&);
constexpr std::array<Rule, 8> rules{device_rules, software_rules, iommu_rules,    wiring_rules,
                                    acs_rules,    link_rules,     ordering_rules, network_rules};

/// What decides, first: blocked whatever else is unknown; slow is an upper bound, which unknown
/// facts can only lower.
constexpr std::array<std::pair<Effect, PairAnswer>, 4> deciding{
    {{Effect::blocks, PairAnswer::blocked},
     {Effect::slows, PairAnswer::slow},
     {Effect::may_block, PairAnswer::unknown},
     {Effect::unknown, PairAnswer::unknown}}};

const RuleNote* first_with(const RuleNotes& notes, Effect effect) {
  const auto note = std::find_if(notes.begin(), notes.end(),
                                 [&](const RuleNote& one) { return one.effect == effect; });
  return note == notes.end() ? nullptr : &*note;
}

PairAnswer answer_of(const RuleNotes& notes) {
  for (const auto& [effect, answer] : deciding)
    if (first_with(notes, effect) != nullptr) return answer;
  return PairAnswer::works;
}

JudgedPair judge_pair(const Graph& graph, const ModelLibrary& models, PairKind kind, DeviceId from,
                      DeviceId to) {
  JudgedPair pair;
  pair.context = make_pair_context(graph, models, kind, from, to);
  for (const Rule rule : rules) rule(pair.context, pair.notes);
  pair.answer = answer_of(pair.notes);
  return pair;
}

/// For the choice of a NIC, a way that may well work counts like one that does: the nearer one is
/// what software takes, and a far NIC is no better for the near one's bits being unknown.
int rank(PairAnswer answer) {
  switch (answer) {
    case PairAnswer::works:
    case PairAnswer::unknown:
      return 0;
    case PairAnswer::slow:
      return 1;
    case PairAnswer::blocked:
      break;
  }
  return 2;
}

/// NICs that cannot do RDMA at all do not count where others can.
bool is_candidate(const Graph& graph, const ModelLibrary& models, DeviceId id) {
  const Device& nic = get(graph.topology(), id);
  return nic_model(models, nic).rdma.value != "none" && nic.gdr != false;
}

/// Whether a NIC with a better answer takes the place of a nearer one: what is merely slow must
/// truly be slower, by the bound.
bool replaces(const JudgedPair& better, const JudgedPair& near) {
  if (near.answer == PairAnswer::blocked) return true;
  const auto least = [](const JudgedPair& pair) {
    const PairContext& context = pair.context;
    const PairBandwidth bound =
        bandwidth_bound(*context.graph, *context.models, context.initiator, context.target);
    return std::min(bound.read.value_or(Bandwidth{}), bound.write.value_or(Bandwidth{}));
  };
  return least(better) > least(near);
}

/// The best pair of each GPU. `pairs`: for each GPU its pairs with the NICs that count. The NIC
/// that data paths take by distance alone (nearest_nic) is the best one, too, unless another has a
/// better answer and replaces it.
std::vector<std::size_t> best_of(const std::vector<JudgedPair>& all,
                                 const std::vector<std::vector<std::size_t>>& pairs) {
  constexpr int distances = static_cast<int>(Distance::none) + 1;
  std::vector<std::vector<RankedNic>> by_distance;
  std::vector<std::vector<RankedNic>> by_answer;
  for (const auto& of_gpu : pairs) {
    by_distance.emplace_back();
    by_answer.emplace_back();
    for (const std::size_t i : of_gpu) {
      const int distance = static_cast<int>(all[i].context.distance);
      by_distance.back().push_back({all[i].context.to, distance});
      by_answer.back().push_back({all[i].context.to, rank(all[i].answer) * distances + distance});
    }
  }
  const auto nearest = take_nics_in_turn(by_distance);
  const auto best = take_nics_in_turn(by_answer);
  std::vector<std::size_t> chosen;
  for (std::size_t g = 0; g < pairs.size(); ++g) {
    const auto place = [&](const std::optional<DeviceId>& nic) {
      const auto found = std::find_if(by_answer[g].begin(), by_answer[g].end(),
                                      [&](const RankedNic& n) { return n.nic == nic; });
      return static_cast<std::size_t>(found - by_answer[g].begin());
    };
    const std::size_t near = place(nearest[g]);
    const std::size_t first = place(best[g]);
    const bool equal = by_answer[g][near].rank == by_answer[g][first].rank;
    chosen.push_back(
        pairs[g][!equal && replaces(all[pairs[g][first]], all[pairs[g][near]]) ? first : near]);
  }
  return chosen;
}

void add_pairs(const Graph& graph, const ModelLibrary& models, HostVerdict& verdict) {
  const auto gpus = devices_of_kind(graph.topology(), DeviceKind::gpu);
  const auto nics = devices_of_kind(graph.topology(), DeviceKind::nic);
  const bool any = std::any_of(nics.begin(), nics.end(),
                               [&](DeviceId nic) { return is_candidate(graph, models, nic); });
  std::vector<std::vector<std::size_t>> candidates;
  for (const DeviceId gpu : gpus) {
    candidates.emplace_back();
    for (const DeviceId nic : nics) {
      if (!any || is_candidate(graph, models, nic))
        candidates.back().push_back(verdict.pairs.size());
      verdict.pairs.push_back(judge_pair(graph, models, PairKind::gpu_nic, gpu, nic));
    }
  }
  if (!nics.empty()) verdict.best = best_of(verdict.pairs, candidates);
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b)
      verdict.pairs.push_back(judge_pair(graph, models, PairKind::gpu_gpu, gpus[a], gpus[b]));
  for (const DeviceId drive : devices_of_kind(graph.topology(), DeviceKind::nvme))
    for (const DeviceId gpu : gpus)
      verdict.pairs.push_back(judge_pair(graph, models, PairKind::nvme_gpu, drive, gpu));
}

/// The rules about pairs in use; they change no answer.
void add_rules_of_use(HostVerdict& verdict, const NcclDistances& nccl) {
  std::vector<const PairContext*> used;
  for (const std::size_t i : verdict.best) {
    JudgedPair& pair = verdict.pairs[i];
    pair.used = true;
    used.push_back(&pair.context);
    if (pair.answer != PairAnswer::blocked) nccl_rules(pair.context, nccl, pair.notes);
  }
  for (auto& [index, note] : sharing_rules(used))
    verdict.pairs[verdict.best[index]].notes.push_back(std::move(note));
}

/// AMD's server processors put each socket's memory into one NUMA node (NPS1) or up to four. NCCL's
/// files have NUMA nodes without saying which share a socket, so they do not tell.
bool has_one_node_a_socket(const Graph& graph, const ModelLibrary& models) {
  constexpr std::int64_t server_channels = 8;
  const Host& host = graph.topology().hosts.front();
  const bool imported = std::any_of(host.numa_nodes.begin(), host.numa_nodes.end(),
                                    [](const NumaNode& n) { return !n.nccl.empty(); });
  if (imported || host.virtual_machine.value_or(false) ||
      host.numa_nodes.size() != host.sockets.size())
    return false;
  return std::all_of(host.sockets.begin(), host.sockets.end(), [&](const Socket& socket) {
    if (socket.model.empty()) return false;
    const CpuModel& cpu = models.cpu(socket.model);
    return !cpu.cpuid.empty() && cpu.cpuid.front().vendor == "AuthenticAMD" &&
           cpu.memory_channels.value >= server_channels;
  });
}

bool no_gpus_reach_each_other(const HostVerdict& verdict) {
  const auto is_pair = [](const JudgedPair& pair) {
    return pair.context.kind == PairKind::gpu_gpu;
  };
  return std::any_of(verdict.pairs.begin(), verdict.pairs.end(), is_pair) &&
         std::all_of(verdict.pairs.begin(), verdict.pairs.end(), [&](const JudgedPair& pair) {
           return !is_pair(pair) || pair.answer == PairAnswer::blocked;
         });
}

}  // namespace

const RuleNote* deciding_note(const JudgedPair& pair) {
  for (const auto& [effect, answer] : deciding)
    if (const RuleNote* note = first_with(pair.notes, effect)) return note;
  return nullptr;
}

HostVerdict judge_host(const Graph& graph, const ModelLibrary& models) {
  HostVerdict verdict;
  add_pairs(graph, models, verdict);
  const NcclDistances nccl(graph, models);
  for (JudgedPair& pair : verdict.pairs)
    pair.nccl_type = nccl.type(pair.context.from, pair.context.to);
  add_rules_of_use(verdict, nccl);
  verdict.findings = group_findings(verdict.pairs);
  const auto note = [&](std::string rule, std::string reason, std::string remedy) {
    verdict.findings.push_back({std::move(rule),
                                Severity::note,
                                std::move(reason),
                                std::move(remedy),
                                Place::Kind::host,
                                {},
                                {}});
  };
  if (no_gpus_reach_each_other(verdict) && has_one_node_a_socket(graph, models))
    note("staging-limited-by-nps1",
         "No two GPUs can reach each other, so their traffic is staged through host memory, which "
         "is slow with one NUMA node a "
         "socket (NPS1): 6 GB/s were seen, and 8 to 21 GB/s with four.",
         "First remove what blocks the pairs; for what stays staged, set NPS4 (four NUMA nodes a "
         "socket) in the BIOS.");
  const bool gpus = !devices_of_kind(graph.topology(), DeviceKind::gpu).empty();
  if (!gpus)
    note("no-gpu", "The host has no GPU, so there is no pair to judge.",
         "Nothing to do, unless the file leaves the GPUs out.");
  else if (verdict.best.empty())
    note("no-nic", "The host has no NIC, so no GPU can do GPUDirect RDMA.",
         "Add a NIC, best below the GPUs' own switch.");
  return verdict;
}

}  // namespace gdr
