#include <algorithm>
#include <memory>
#include <numeric>

#include "src/verdict/host_verdict.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr {
namespace {

bool over_xgmi(const PairContext& pair) {
  if (pair.hardware->is_amd_gpu(pair.from) || pair.hardware->is_amd_gpu(pair.to)) return true;
  const std::string& from = pair.device(pair.from).name;
  const std::string& to = pair.device(pair.to).name;
  const std::vector<NvLink>& links = pair.host().nvlinks;
  return std::any_of(links.begin(), links.end(), [&](const NvLink& link) {
    return link.model.starts_with("xgmi") &&
           std::minmax(link.from, link.to) == std::minmax(from, to);
  });
}

/// nvidia-smi's word; rocm-smi's, with the number of links, for xGMI.
std::string distance_word(const PairContext& pair) {
  if (pair.nvlinks > 0 && over_xgmi(pair)) return "XGMI" + std::to_string(pair.nvlinks);
  return smi_distance(pair.graph(), pair.from, pair.to);
}

Pair written_pair(const JudgedPair& judged, const std::string& host, std::size_t index) {
  const PairContext& context = judged.context;
  Pair pair;
  pair.kind = context.kind;
  pair.host = index;
  pair.from = host + "/" + context.device(context.from).name;
  pair.to = host + "/" + context.device(context.to).name;
  pair.distance = distance_word(context);
  pair.nccl_distance = nccl::to_string(judged.nccl_type);
  pair.route = context.route;
  const Fact<bool> redirected = context.routes.redirected();
  if (context.over_nvlink()) pair.redirected = false;
  else if (redirected.known()) pair.redirected = redirected.value;
  pair.kernel_p2pdma = context.kernel;
  pair.answer = judged.answer;
  for (const RuleNote& note : judged.notes)
    if (std::find(pair.findings.begin(), pair.findings.end(), note.rule) == pair.findings.end())
      pair.findings.push_back(note.rule);
  return pair;
}

/// The finding with the note that decides the pair's answer.
std::optional<std::size_t> deciding_finding(const HostVerdict& judged, std::size_t pair) {
  const RuleNote* note = deciding_note(judged.pairs[pair]);
  if (note == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < judged.findings.size(); ++i) {
    const FindingGroup& group = judged.findings[i];
    if (group.rule == note->rule && group.reason == note->reason && group.remedy == note->remedy &&
        std::binary_search(group.pairs.begin(), group.pairs.end(), pair))
      return i;
  }
  return std::nullopt;
}

/// The pairs of one host in the verdict's form, with their bandwidths.
std::vector<Pair> written_pairs(const HostVerdict& host, const std::string& name) {
  std::vector<Pair> pairs;
  for (const JudgedPair& judged : host.pairs) {
    pairs.push_back(written_pair(judged, name, 0));
    pairs.back().decided_by = deciding_finding(host, pairs.size() - 1);
    if (judged.answer == PairAnswer::works || judged.answer == PairAnswer::slow)
      pairs.back().bandwidth = bandwidth_bound(judged.context);
  }
  return pairs;
}

/// Sorts errors first and adapts the pairs' indices of findings.
void sort_findings(Verdict& verdict) {
  std::vector<std::size_t> order(verdict.findings.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return verdict.findings[a].severity < verdict.findings[b].severity;
  });
  std::vector<Finding> sorted;
  std::vector<std::size_t> place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    sorted.push_back(std::move(verdict.findings[order[i]]));
    place[order[i]] = i;
  }
  verdict.findings = std::move(sorted);
  for (Pair& pair : verdict.pairs)
    if (pair.decided_by) pair.decided_by = place[*pair.decided_by];
}

void add_host(Verdict& verdict, const HostVerdict& judged, const std::vector<Pair>& pairs,
              const Topology& topology, std::size_t index) {
  const std::string& name = topology.hosts[index].name;
  const std::size_t first = verdict.pairs.size();
  const std::size_t first_finding = verdict.findings.size();
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const PairContext& context = judged.pairs[i].context;
    Pair pair = pairs[i];
    pair.host = index;
    pair.from = name + "/" + context.device(context.from).name;
    pair.to = name + "/" + context.device(context.to).name;
    if (pair.decided_by) *pair.decided_by += first_finding;
    verdict.pairs.push_back(std::move(pair));
  }
  for (const std::size_t best : judged.best)
    verdict.best.push_back({index, verdict.pairs[first + best].from, first + best});
  for (const FindingGroup& group : judged.findings) {
    verdict.findings.push_back({group.rule, group.severity, index, where_text(group, judged, name),
                                group.reason, group.remedy, group.pairs});
    for (std::size_t& pair : verdict.findings.back().pairs) pair += first;
  }
  for (const Remark& remark : topology.hosts[index].remarks) {
    std::string where =
        remark.where.empty() || remark.where == "host" ? name : name + "/" + remark.where;
    for (auto at = where.find(", "); at != std::string::npos; at = where.find(", ", at + 2))
      where.insert(at + 2, name + "/");
    verdict.findings.push_back(
        {remark.rule, remark.severity, index, where, remark.message, remark.remedy, {}});
  }
}

}  // namespace

std::vector<std::vector<std::size_t>> same_hosts(const Topology& topology) {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<Host> nameless;
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) {
    Host host = topology.hosts[h];
    host.name.clear();
    const auto found = std::find(nameless.begin(), nameless.end(), host);
    if (found != nameless.end()) {
      groups[static_cast<std::size_t>(found - nameless.begin())].push_back(h);
      continue;
    }
    nameless.push_back(std::move(host));
    groups.push_back({h});
  }
  return groups;
}

Verdict judge(const Graph& graph, const ModelLibrary& models) {
  const Topology& topology = graph.topology();
  struct Judged {
    Topology alone;  // one host at a time, so that equal hosts cost nothing extra
    std::unique_ptr<Graph> graph;
    std::unique_ptr<Hardware> hardware;
    HostVerdict verdict;
    std::vector<Pair> pairs;
  };
  const auto groups = same_hosts(topology);
  std::vector<Judged> judged(groups.size());
  std::vector<std::size_t> group_of(topology.hosts.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    Judged& one = judged[g];
    one.alone.name = topology.name;
    one.alone.fabric = topology.fabric;
    one.alone.hosts = {topology.hosts[groups[g].front()]};
    one.graph = std::make_unique<Graph>(one.alone);
    one.hardware = std::make_unique<Hardware>(*one.graph, models);
    one.verdict = judge_host(*one.hardware);
    one.pairs = written_pairs(one.verdict, one.alone.hosts.front().name);
    for (const std::size_t h : groups[g]) group_of[h] = g;
  }
  Verdict verdict;
  for (std::size_t h = 0; h < topology.hosts.size(); ++h)
    add_host(verdict, judged[group_of[h]].verdict, judged[group_of[h]].pairs, topology, h);
  sort_findings(verdict);
  return verdict;
}

const Finding* finding_of(const Verdict& verdict, const Pair& pair) {
  return pair.decided_by ? &verdict.findings.at(*pair.decided_by) : nullptr;
}

}  // namespace gdr
