#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "src/verdict/host_verdict.hpp"

namespace gdr {
namespace {

Severity severity_of(const RuleNote& note, const JudgedPair& pair) {
  if (!pair.used) return Severity::note;
  const bool decides = (note.effect == Effect::blocks && pair.answer == PairAnswer::blocked) ||
                       (note.effect == Effect::slows && pair.answer == PairAnswer::slow);
  if (decides) return Severity::error;
  return note.effect == Effect::costs || note.effect == Effect::slows ||
                 note.effect == Effect::may_block
             ? Severity::warning
             : Severity::note;
}

/// A note on one place (or, for place kind pair, on one pair) with all pairs that it concerns.
struct Statement {
  const RuleNote* note = nullptr;
  Severity severity = Severity::note;
  std::vector<std::size_t> pairs;
};

using StatementKey = std::tuple<std::string, std::string, std::string, Place, std::size_t>;

/// Statements in the order in which they were first made, each with the worst severity of its
/// pairs.
std::vector<Statement> statements_of(const std::vector<JudgedPair>& pairs) {
  std::vector<Statement> statements;
  std::map<StatementKey, std::size_t> known;
  for (std::size_t i = 0; i < pairs.size(); ++i)
    for (const RuleNote& note : pairs[i].notes) {
      const std::size_t own = note.place.kind == Place::Kind::pair ? i : 0;
      const Severity severity = severity_of(note, pairs[i]);
      const auto [at, added] = known.try_emplace(
          {note.rule, note.reason, note.remedy, note.place, own}, statements.size());
      if (added) statements.push_back({&note, severity, {}});
      Statement& statement = statements[at->second];
      statement.severity = std::min(statement.severity, severity);
      if (statement.pairs.empty() || statement.pairs.back() != i) statement.pairs.push_back(i);
    }
  return statements;
}

using GroupKey = std::tuple<Severity, std::string, std::string, std::string, Place::Kind, PairKind>;

GroupKey group_key(const Statement& statement, const std::vector<JudgedPair>& pairs) {
  const RuleNote& note = *statement.note;
  const bool pair = note.place.kind == Place::Kind::pair;
  return {
      statement.severity, note.rule,
      note.reason,        note.remedy,
      note.place.kind,    pair ? pairs[statement.pairs.front()].context.kind : PairKind::gpu_nic};
}

/// A name's letters and its number at the end, -1 without one.
std::pair<std::string, long> numbered(const std::string& name) {
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  if (digits == name.size() || name.size() - digits > 6) return {name, -1};
  return {name.substr(0, digits), std::stol(name.substr(digits))};
}

/// "gpu0-gpu3, gpu6": three or more in a row become a range.
std::string names_text(const std::vector<std::string>& names, const std::string& prefix = "") {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < names.size();) {
    const auto [letters, number] = numbered(names[i]);
    std::size_t end = i + 1;
    while (number >= 0 && end < names.size() &&
           numbered(names[end]) == std::pair(letters, number + static_cast<long>(end - i)))
      ++end;
    const bool run = end - i > 2;
    if (!run) end = i + 1;
    parts.push_back(run ? fmt::format("{0}{1}-{2}", prefix, names[i], names[end - 1])
                        : prefix + names[i]);
    i = end;
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "gpu0-gpu3 with each other" for all pairs among three or more GPUs; empty otherwise.
std::string all_pairs_text(const std::vector<std::size_t>& pairs, const HostVerdict& verdict) {
  std::set<DeviceId> ids;
  for (const std::size_t i : pairs) {
    const PairContext& pair = verdict.pairs[i].context;
    if (pair.kind != PairKind::gpu_gpu) return "";
    ids.insert({pair.from, pair.to});
  }
  if (ids.size() < 3 || pairs.size() != ids.size() * (ids.size() - 1) / 2) return "";
  std::vector<std::string> names;
  const PairContext& first = verdict.pairs[pairs.front()].context;
  for (const DeviceId id : ids) names.push_back(first.device(id).name);
  return names_text(names) + " with each other";
}

/// "gpu0, gpu1 with nic2, nic3; gpu2 with nic0", for pairs of one kind: GPUs with the same partners
/// are listed together.
std::string alike_text(const std::vector<std::size_t>& pairs, const HostVerdict& verdict) {
  if (const std::string all = all_pairs_text(pairs, verdict); !all.empty()) return all;
  std::vector<std::string> order;
  std::map<std::string, std::vector<std::string>> partners;
  for (const std::size_t i : pairs) {
    const PairContext& pair = verdict.pairs[i].context;
    const std::string& from = pair.device(pair.from).name;
    if (partners.find(from) == partners.end()) order.push_back(from);
    partners[from].push_back(pair.device(pair.to).name);
  }
  std::vector<std::string> parts;
  std::set<std::string> done;
  for (const std::string& from : order) {
    if (done.count(from) != 0) continue;
    std::vector<std::string> alike;
    for (const std::string& other : order)
      if (partners[other] == partners[from]) alike.push_back(other);
    done.insert(alike.begin(), alike.end());
    parts.push_back(fmt::format("{} with {}", names_text(alike), names_text(partners[from])));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string pairs_text(const std::vector<std::size_t>& pairs, const HostVerdict& verdict) {
  std::map<PairKind, std::vector<std::size_t>> kinds;
  for (const std::size_t i : pairs) kinds[verdict.pairs[i].context.kind].push_back(i);
  std::vector<std::string> parts;
  for (const auto& [kind, of_kind] : kinds) parts.push_back(alike_text(of_kind, verdict));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// Ports of one switch with the same bits are listed together.
std::string ports_text(const FindingGroup& group, const std::string& host) {
  std::vector<Place> alike;  // what the ports have in common, in the order of the file
  std::map<Place, std::vector<std::string>> devices;
  for (Place place : group.places) {
    const std::string device = std::exchange(place.device, "");
    if (devices.find(place) == devices.end()) alike.push_back(place);
    devices[place].push_back(device);
  }
  std::vector<std::string> parts;
  for (const Place& place : alike) {
    const std::vector<std::string>& below = devices[place];
    std::string text =
        place.above.empty()
            ? fmt::format("port{} above {}", below.size() > 1 ? "s" : "",
                          names_text(below, host + "/"))
            : fmt::format("{}/{} {} port{} of {}", host, place.above,
                          place.root ? "root" : "downstream", below.size() > 1 ? "s" : "",
                          names_text(below, host + "/"));
    if (!place.bits.empty())
      text += fmt::format(", bit{} {}", place.bits.find('+') != std::string::npos ? "s" : "",
                          place.bits);
    parts.push_back(std::move(text));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

}  // namespace

Place device_place(const PairContext& pair, DeviceId device) {
  return {Place::Kind::device, pair.device(device).name, {}, false, {}};
}

Place port_place(const PairContext& pair, DeviceId device, std::string bits) {
  const Device& below = pair.device(device);
  if (below.place_known == false)
    return {Place::Kind::port, below.name, {}, false, std::move(bits)};
  const auto parent = device_index(pair.host(), below.under);
  const bool root = !parent || pair.host().devices[*parent].kind != DeviceKind::pci_switch;
  return {Place::Kind::port, below.name, below.under, root, std::move(bits)};
}

std::vector<FindingGroup> group_findings(const std::vector<JudgedPair>& pairs) {
  std::vector<FindingGroup> groups;
  std::map<GroupKey, std::size_t> known;
  for (const Statement& statement : statements_of(pairs)) {
    const RuleNote& note = *statement.note;
    const auto [at, added] = known.try_emplace(group_key(statement, pairs), groups.size());
    if (added)
      groups.push_back(
          {note.rule, statement.severity, note.reason, note.remedy, note.place.kind, {}, {}});
    FindingGroup& group = groups[at->second];
    group.pairs.insert(group.pairs.end(), statement.pairs.begin(), statement.pairs.end());
    if (note.place.kind == Place::Kind::device || note.place.kind == Place::Kind::port)
      group.places.push_back(note.place);
  }
  for (FindingGroup& group : groups) {
    std::sort(group.pairs.begin(), group.pairs.end());
    group.pairs.erase(std::unique(group.pairs.begin(), group.pairs.end()), group.pairs.end());
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FindingGroup& a, const FindingGroup& b) {
    return a.severity < b.severity;
  });
  return groups;
}

std::string where_text(const FindingGroup& group, const HostVerdict& verdict,
                       const std::string& host) {
  if (group.kind == Place::Kind::host) return host;
  if (group.kind == Place::Kind::port) return ports_text(group, host);
  if (group.kind != Place::Kind::device) {
    if (group.pairs.size() > 1)
      return fmt::format("{}: {}", host, pairs_text(group.pairs, verdict));
    const PairContext& pair = verdict.pairs[group.pairs.front()].context;
    return fmt::format("{0}/{1} with {0}/{2}", host, pair.device(pair.from).name,
                       pair.device(pair.to).name);
  }
  std::vector<std::string> devices;
  for (const Place& place : group.places) devices.push_back(place.device);
  return names_text(devices, host + "/");
}

}  // namespace gdr
