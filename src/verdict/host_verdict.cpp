#include "verdict/host_verdict.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace gdr {
namespace {

using Rule = void (*)(const PairContext&, RuleNotes&);
constexpr std::array<Rule, 8> rules{device_rules, software_rules, iommu_rules,    wiring_rules,
                                    acs_rules,    link_rules,     ordering_rules, network_rules};

/// Blocked whatever else is unknown; slow is an upper bound, which unknown facts can only lower.
PairAnswer answer_of(const RuleNotes& notes) {
  const auto has = [&](Effect effect) {
    return std::any_of(notes.begin(), notes.end(), [&](const RuleNote& note) { return note.effect == effect; });
  };
  if (has(Effect::blocks)) return PairAnswer::blocked;
  if (has(Effect::slows)) return PairAnswer::slow;
  return has(Effect::unknown) ? PairAnswer::unknown : PairAnswer::works;
}

JudgedPair judge_pair(const Graph& graph, const ModelLibrary& models, PairKind kind, DeviceId from, DeviceId to) {
  JudgedPair pair;
  pair.context = make_pair_context(graph, models, kind, from, to);
  for (const Rule rule : rules) rule(pair.context, pair.notes);
  pair.answer = answer_of(pair.notes);
  return pair;
}

int rank(PairAnswer answer) {
  switch (answer) {
    case PairAnswer::works:
      return 0;
    case PairAnswer::unknown:
      return 1;
    case PairAnswer::slow:
      return 2;
    case PairAnswer::blocked:
      break;
  }
  return 3;
}

/// NICs that cannot do RDMA at all do not count where others can.
bool is_candidate(const JudgedPair& pair) {
  const Device& nic = pair.context.initiator_device();
  return nic_model(*pair.context.models, nic).rdma.value != "none" && nic.gdr != false;
}

/// The best pair of a GPU among `pairs` (all of them GPU-NIC pairs of that GPU, in NIC order).
std::size_t best_of(const std::vector<JudgedPair>& all, const std::vector<std::size_t>& pairs) {
  const bool any = std::any_of(pairs.begin(), pairs.end(), [&](std::size_t i) { return is_candidate(all[i]); });
  const auto key = [&](std::size_t i) {
    return std::tuple(any && !is_candidate(all[i]), rank(all[i].answer), static_cast<int>(all[i].context.distance));
  };
  return *std::min_element(pairs.begin(), pairs.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
}

void add_pairs(const Graph& graph, const ModelLibrary& models, HostVerdict& verdict) {
  const auto gpus = devices_of_kind(graph.topology(), DeviceKind::gpu);
  for (const DeviceId gpu : gpus) {
    std::vector<std::size_t> own;
    for (const DeviceId nic : devices_of_kind(graph.topology(), DeviceKind::nic)) {
      own.push_back(verdict.pairs.size());
      verdict.pairs.push_back(judge_pair(graph, models, PairKind::gpu_nic, gpu, nic));
    }
    if (!own.empty()) verdict.best.push_back(best_of(verdict.pairs, own));
  }
  for (std::size_t a = 0; a < gpus.size(); ++a)
    for (std::size_t b = a + 1; b < gpus.size(); ++b)
      verdict.pairs.push_back(judge_pair(graph, models, PairKind::gpu_gpu, gpus[a], gpus[b]));
  for (const DeviceId drive : devices_of_kind(graph.topology(), DeviceKind::nvme))
    for (const DeviceId gpu : gpus) verdict.pairs.push_back(judge_pair(graph, models, PairKind::nvme_gpu, drive, gpu));
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
  for (auto& [index, note] : sharing_rules(used)) verdict.pairs[verdict.best[index]].notes.push_back(std::move(note));
}

}  // namespace

HostVerdict judge_host(const Graph& graph, const ModelLibrary& models) {
  HostVerdict verdict;
  add_pairs(graph, models, verdict);
  const NcclDistances nccl(graph, models);
  for (JudgedPair& pair : verdict.pairs) pair.nccl_type = nccl.type(pair.context.from, pair.context.to);
  add_rules_of_use(verdict, nccl);
  verdict.findings = group_findings(verdict.pairs);
  const auto note = [&](std::string rule, std::string reason, std::string remedy) {
    verdict.findings.push_back({std::move(rule), Severity::note, std::move(reason), std::move(remedy), {host_place()}, {}});
  };
  const bool gpus = !devices_of_kind(graph.topology(), DeviceKind::gpu).empty();
  if (!gpus)
    note("no-gpu", "The host has no GPU, so there is no pair to judge.", "Nothing to do, unless the file leaves the GPUs out.");
  else if (verdict.best.empty())
    note("no-nic", "The host has no NIC, so no GPU can do GPUDirect RDMA.", "Add a NIC, best below the GPUs' own switch.");
  return verdict;
}

}  // namespace gdr
