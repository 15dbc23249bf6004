#include "src/study/ask.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/common/check.hpp"

namespace gdr::study {
namespace {

constexpr std::array<std::string_view, 3> nic_reason_names{"chosen", "best", "nearest"};
constexpr std::array<std::string_view, 2> refusal_names{"blocked", "no-path"};

const BestPair* best_of(const Verdict& verdict, const std::string& gpu) {
  const auto best = std::find_if(verdict.best.begin(), verdict.best.end(),
                                 [&](const BestPair& one) { return one.gpu == gpu; });
  return best == verdict.best.end() ? nullptr : &*best;
}

const DeviceId* nic_of_host(const std::vector<DeviceId>& via, std::size_t host) {
  const auto nic =
      std::find_if(via.begin(), via.end(), [&](DeviceId id) { return id.host == host; });
  return nic == via.end() ? nullptr : &*nic;
}

/// Gives each GPU without a chosen NIC on its host its best NIC.
Transfer with_best_nics(const Topology& topology, const Verdict& verdict, Transfer transfer) {
  if (transfer.from.host == transfer.to.host) return transfer;
  for (const DeviceId end : {transfer.from, transfer.to}) {
    if (nic_of_host(transfer.via, end.host) != nullptr) continue;
    if (const BestPair* best = best_of(verdict, label(topology, end)))
      transfer.via.push_back(find_device(topology, verdict.pairs.at(best->pair).to));
  }
  return transfer;
}

/// The NICs of a transfer that can be planned; `chosen`: those that the question names.
std::vector<TakenNic> nics_of(const Graph& graph, const ModelLibrary& models,
                              const Transfer& transfer, const std::vector<DeviceId>& chosen) {
  std::vector<TakenNic> nics;
  if (transfer.from.host == transfer.to.host) return nics;
  for (const DeviceId end : {transfer.from, transfer.to}) {
    if (const DeviceId* nic = nic_of_host(transfer.via, end.host))
      nics.push_back(
          {*nic, nic_of_host(chosen, end.host) != nullptr ? NicReason::chosen : NicReason::best});
    else if (const auto near = nic_for(graph, models, transfer, end))
      nics.push_back({*near, NicReason::nearest});
  }
  return nics;
}

std::optional<std::size_t> pair_between(const Topology& topology, const Verdict& verdict,
                                        DeviceId a, DeviceId b) {
  const std::string one = label(topology, a);
  const std::string other = label(topology, b);
  for (std::size_t i = 0; i < verdict.pairs.size(); ++i) {
    const Pair& pair = verdict.pairs[i];
    if ((pair.from == one && pair.to == other) || (pair.from == other && pair.to == one)) return i;
  }
  return std::nullopt;
}

bool needs_peers(const Transfer& transfer) {
  return transfer.path == PathKind::p2p || transfer.path == PathKind::gds ||
         (transfer.path == PathKind::load_store && transfer.host_end == HostEnd::none);
}

/// The pairs that the path needs.
std::vector<std::size_t> pairs_of(const Topology& topology, const Verdict& verdict,
                                  const Admission& admission) {
  const Transfer& transfer = admission.transfer;
  std::vector<std::size_t> pairs;
  const auto add = [&](DeviceId a, DeviceId b) {
    if (const auto pair = pair_between(topology, verdict, a, b)) pairs.push_back(*pair);
  };
  if (needs_peers(transfer)) add(transfer.from, transfer.to);
  if (transfer.path == PathKind::gdr)
    for (const TakenNic& taken : admission.nics)
      add(taken.nic.host == transfer.from.host ? transfer.from : transfer.to, taken.nic);
  return pairs;
}

/// The worst answer counts: blocked, then slow, then unknown, then works.
int badness(PairAnswer answer) {
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

}  // namespace

std::string_view to_string(NicReason reason) {
  return nic_reason_names.at(static_cast<std::size_t>(reason));
}
std::string_view to_string(Refusal::Kind kind) {
  return refusal_names.at(static_cast<std::size_t>(kind));
}

std::string reason_of(const Refusal& refusal, const Verdict& verdict) {
  if (refusal.kind == Refusal::Kind::no_path) return refusal.obstacle;
  const Pair& pair = verdict.pairs.at(*refusal.pair);
  const Finding& finding = verdict.findings.at(*refusal.finding);
  return fmt::format("{} and {} cannot reach each other ({}): {} {}", pair.from, pair.to,
                     finding.rule, finding.message, finding.remedy);
}

Admission admit(const Graph& graph, const ModelLibrary& models, const Verdict& verdict,
                const Transfer& transfer) {
  Admission admission;
  admission.transfer = with_best_nics(graph.topology(), verdict, transfer);
  if (auto sentence = obstacle(graph, models, admission.transfer)) {
    admission.refusal =
        Refusal{Refusal::Kind::no_path, std::nullopt, std::nullopt, std::move(*sentence)};
    return admission;
  }
  admission.nics = nics_of(graph, models, admission.transfer, transfer.via);
  admission.pairs = pairs_of(graph.topology(), verdict, admission);
  for (const std::size_t i : admission.pairs) {
    const PairAnswer answer = verdict.pairs[i].answer;
    if (badness(answer) <= badness(admission.verdict)) continue;
    admission.verdict = answer;
    admission.worst = i;
  }
  if (admission.verdict == PairAnswer::blocked) {
    const auto& decided_by = verdict.pairs[*admission.worst].decided_by;
    check(decided_by.has_value(), "a pair is blocked by a finding");
    admission.refusal = Refusal{Refusal::Kind::blocked, admission.worst, decided_by, {}};
  }
  return admission;
}

Answer ask(const Hardware& hardware, const Verdict& verdict, sim::Simulator& simulator,
           const Question& question) {
  Answer answer{admit(hardware.graph(), hardware.models(), verdict, question.transfer), {}, {}};
  if (answer.admission.refusal) {
    answer.outcome = *answer.admission.refusal;
    return answer;
  }
  const Transfer& transfer = answer.admission.transfer;
  answer.outcome = sim::predict(simulator, hardware, transfer, question.options);
  if (question.range) answer.range = range_of(simulator, hardware, transfer, question.options);
  return answer;
}

}  // namespace gdr::study
