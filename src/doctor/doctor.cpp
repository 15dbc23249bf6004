#include "src/doctor/doctor.hpp"

#include <algorithm>

#include "src/common/error.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::doctor {
namespace {

/// Inputs without devices are no error here: logs and module lists have facts as well.
std::optional<Topology> topology_of(const std::vector<NamedText>& inputs,
                                    const ModelLibrary& models) {
  std::vector<NamedText> listings;
  for (const NamedText& input : inputs) {
    if (recognise(input) == InputKind::text) {
      try {
        (void)read_machine({input});
      } catch (const InputError&) {
        continue;
      }
    }
    listings.push_back(input);
  }
  if (listings.empty()) return std::nullopt;
  try {
    return import_machine(listings, &models);
  } catch (const InputError&) {
    const bool text_only =
        std::all_of(listings.begin(), listings.end(), [](const NamedText& input) {
          const InputKind kind = recognise(input);
          return kind == InputKind::text || kind == InputKind::capture;
        });
    if (text_only) return std::nullopt;
    throw;
  }
}

Check check_of(const Finding& finding) {
  const bool unknown = finding.rule.ends_with("-unknown");
  Check check{finding.rule,     unknown ? State::unknown : State::problem,
              finding.severity, finding.message,
              finding.remedy,   finding.where};
  if (finding.rule == "acs-clear") check.state = State::fine;
  return check;
}

/// Explains why far pairs work: without P2P they are staged through shared memory and never use the
/// broken path.
void far_pairs(const Verdict& verdict, Checks& checks) {
  const auto any = [&](auto wanted) {
    return std::any_of(verdict.pairs.begin(), verdict.pairs.end(), [&](const Pair& pair) {
      return pair.kind == PairKind::gpu_gpu && wanted(pair);
    });
  };
  const bool near = any([](const Pair& pair) { return pair.route == PairRoute::pci_switch; });
  const bool far = any([](const Pair& pair) { return pair.route == PairRoute::socket_link; });
  const bool trouble =
      std::any_of(verdict.findings.begin(), verdict.findings.end(), [](const Finding& finding) {
        return finding.rule == "iommu-translating" || finding.rule == "acs-redirect";
      });
  if (near && far && trouble)
    checks.push_back({"far-pairs-do-not-hang", State::problem, Severity::note,
                      "Only GPUs that communicate directly (PIX, PXB) can hang; pairs across "
                      "sockets (SYS) go through shared memory and work.",
                      "Working far pairs do not rule out the IOMMU and ACS."});
}

std::vector<Elsewhere> elsewhere_of(const std::vector<NamedText>& inputs) {
  std::vector<Elsewhere> list;
  for (const NamedText& input : inputs) {
    if (recognise(input) != InputKind::text) continue;
    const std::string file = input.name == "standard input" ? "FILE" : input.name;
    for (const ForAnotherCommand& other : for_other_commands(input.text))
      list.push_back({input.name, other.what, other.command + " " + file});
  }
  return list;
}

}  // namespace

Report examine(const std::vector<NamedText>& inputs, const ModelLibrary& models) {
  Report report;
  const Facts facts = read_facts(inputs);
  report.missing = facts.missing;
  report.elsewhere = elsewhere_of(inputs);
  report.topology = topology_of(inputs, models);
  if (report.topology) {
    // Facts that only the checklist knows also change the verdict.
    Software& software = report.topology->hosts.front().software;
    if (!software.iommu) software.iommu = facts.iommu;
    const Verdict verdict = judge(Graph(*report.topology), models);
    for (const Finding& finding : verdict.findings) report.checks.push_back(check_of(finding));
    far_pairs(verdict, report.checks);
  }
  for (Check& check : all_checks(facts)) {
    const auto same = std::find_if(report.checks.begin(), report.checks.end(),
                                   [&](const Check& other) { return other.rule == check.rule; });
    if (same == report.checks.end()) report.checks.push_back(std::move(check));
    else if (check.state == State::problem)
      same->severity = std::min(same->severity, check.severity);
  }
  sort_checks(report.checks);
  return report;
}

}  // namespace gdr::doctor
