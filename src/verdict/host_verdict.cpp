#include "src/verdict/host_verdict.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace gdr {
namespace {

using Rule = void (*)(const PairContext&, RuleNotes&);
constexpr std::array<Rule, 8> rules{device_rules, software_rules, iommu_rules,    wiring_rules,
                                    acs_rules,    link_rules,     ordering_rules, network_rules};

/// In order of precedence: blocked holds whatever else is unknown; slow is an upper bound, which
/// unknown facts can only lower.
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

JudgedPair judge_pair(const Hardware& hardware, PairKind kind, DeviceId from, DeviceId to) {
  JudgedPair pair;
  pair.context = make_pair_context(hardware, kind, from, to);
  for (const Rule rule : rules) rule(pair.context, pair.notes);
  pair.answer = answer_of(pair.notes);
  return pair;
}

/// For the choice of a NIC, unknown counts like works: software takes the nearer NIC, and that its
/// bits are unknown makes a far one no better.
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

/// Whether a NIC with a better answer replaces a nearer one. A slow one is replaced only if its
/// bound is lower.
bool replaces(const JudgedPair& better, const JudgedPair& near) {
  if (near.answer == PairAnswer::blocked) return true;
  const auto least = [](const JudgedPair& pair) {
    const PairBandwidth bound = bandwidth_bound(pair.context);
    return std::min(bound.read.value_or(Bandwidth{}), bound.write.value_or(Bandwidth{}));
  };
  return least(better) > least(near);
}

/// The best pair of each GPU, as indices of `pairs` (GPU-NIC pairs, ordered by GPU). Hardware ranks
/// NICs by distance, as for the planner of transfers; the nearest one is best unless one with a
/// better answer replaces it.
std::vector<std::size_t> best_of(const Hardware& hardware, const std::vector<JudgedPair>& pairs) {
  constexpr int distances = static_cast<int>(Distance::none) + 1;
  std::map<std::pair<DeviceId, DeviceId>, std::size_t> index;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    index[{pairs[i].context.from, pairs[i].context.to}] = i;
  const auto gpus = devices_of_kind(hardware.topology(), DeviceKind::gpu);
  std::vector<std::vector<RankedNic>> by_distance;
  std::vector<std::vector<RankedNic>> by_answer;
  for (const DeviceId gpu : gpus) {
    auto nics = hardware.nics_by_distance(gpu, NicUse::gpudirect);
    if (nics.empty()) nics = hardware.nics_by_distance(gpu, NicUse::sockets);
    by_distance.push_back(nics);
    for (RankedNic& nic : nics) nic.rank += distances * rank(pairs[index[{gpu, nic.nic}]].answer);
    by_answer.push_back(std::move(nics));
  }
  const auto nearest = take_nics_in_turn(by_distance);
  const auto best = take_nics_in_turn(by_answer);
  std::vector<std::size_t> chosen;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto rank_of = [&](DeviceId nic) {
      return std::find_if(by_answer[g].begin(), by_answer[g].end(),
                          [&](const RankedNic& n) { return n.nic == nic; })
          ->rank;
    };
    const std::size_t near = index[{gpus[g], *nearest[g]}];
    const std::size_t first = index[{gpus[g], *best[g]}];
    const bool equal = rank_of(*nearest[g]) == rank_of(*best[g]);
    chosen.push_back(!equal && replaces(pairs[first], pairs[near]) ? first : near);
  }
  return chosen;
}

void add_pairs(const Hardware& hardware, HostVerdict& verdict) {
  const Topology& topology = hardware.topology();
  const auto gpus = devices_of_kind(topology, DeviceKind::gpu);
  const auto nics = devices_of_kind(topology, DeviceKind::nic);
  for (const DeviceId gpu : gpus)
    for (const DeviceId nic : nics)
      verdict.pairs.push_back(judge_pair(hardware, PairKind::gpu_nic, gpu, nic));
  if (!nics.empty()) verdict.best = best_of(hardware, verdict.pairs);
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b)
      verdict.pairs.push_back(judge_pair(hardware, PairKind::gpu_gpu, gpus[a], gpus[b]));
  for (const DeviceId drive : devices_of_kind(topology, DeviceKind::nvme))
    for (const DeviceId gpu : gpus)
      verdict.pairs.push_back(judge_pair(hardware, PairKind::nvme_gpu, drive, gpu));
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

/// AMD's server processors put each socket's memory into one NUMA node (NPS1) or up to four. This
/// is unknown for NCCL's files, which do not state which NUMA nodes share a socket.
bool has_one_node_per_socket(const Hardware& hardware) {
  constexpr std::int64_t server_channels = 8;
  const Host& host = hardware.topology().hosts.front();
  const bool imported = std::any_of(host.numa_nodes.begin(), host.numa_nodes.end(),
                                    [](const NumaNode& n) { return !n.nccl.empty(); });
  if (imported || host.virtual_machine.value_or(false) ||
      host.numa_nodes.size() != host.sockets.size())
    return false;
  return std::all_of(host.sockets.begin(), host.sockets.end(), [&](const Socket& socket) {
    if (socket.model.empty()) return false;
    const auto index = static_cast<std::size_t>(&socket - host.sockets.data());
    const CpuModel& cpu = hardware.cpu(hardware.graph().socket(0, index));
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

HostVerdict judge_host(const Hardware& hardware) {
  const Graph& graph = hardware.graph();
  HostVerdict verdict;
  add_pairs(hardware, verdict);
  const NcclDistances nccl(hardware);
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
  if (no_gpus_reach_each_other(verdict) && has_one_node_per_socket(hardware))
    note("staging-limited-by-nps1",
         "No two GPUs can reach each other, so their traffic is staged through host memory, which "
         "is slow with one NUMA node per "
         "socket (NPS1): 6 GB/s were seen, and 8 to 21 GB/s with four.",
         "First remove what blocks the pairs; for what stays staged, set NPS4 (four NUMA nodes per "
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
