#include "src/report/doctor_report.hpp"

#include <fmt/format.h>

#include "src/report/output.hpp"

namespace gdr::report {

std::string to_text(const doctor::Report& report) {
  std::string out;
  for (const doctor::Elsewhere& one : report.elsewhere)
    out += wrapped(fmt::format("{}: {}. {} reads it; the checklist knows only errors in it.",
                               one.input, one.what, one.command),
                   4) +
           "\n\n";
  const auto section = [&](doctor::State state, std::string_view title) {
    bool any = false;
    for (const doctor::Check& check : report.checks) {
      if (check.state != state) continue;
      if (!any) out += fmt::format("{}\n", title);
      any = true;
      const std::string kind =
          state == doctor::State::problem ? fmt::format("{}: ", to_string(check.severity)) : "";
      out += fmt::format("  {}{}\n", kind, check.rule);
      if (!check.where.empty())
        out += std::string(4, ' ') + wrapped("at " + check.where, 4, 76) + "\n";
      out += std::string(4, ' ') + wrapped(check.evidence, 4, 76) + "\n";
      if (!check.remedy.empty())
        out += std::string(4, ' ') + wrapped("Remedy: " + check.remedy, 4, 76) + "\n";
    }
    if (any) out += "\n";
  };
  section(doctor::State::problem, "Problems");
  section(doctor::State::unknown, "Not known");
  section(doctor::State::fine, "Fine");
  for (const auto& [what, why] : report.missing)
    out += wrapped(fmt::format("Not read: {}: {}", what, why), 4) + "\n";
  out +=
      report.topology ? "" : "No GPU or NIC was shown: links, ACS and distances are not judged.\n";
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

json::Value to_json(const doctor::Report& report) {
  json::Array checks;
  for (const doctor::Check& check : report.checks) {
    json::Value item =
        json::Object{{"rule", check.rule}, {"state", std::string(to_string(check.state))}};
    if (check.state == doctor::State::problem)
      item.set("severity", std::string(to_string(check.severity)));
    if (!check.where.empty()) item.set("where", check.where);
    item.set("evidence", check.evidence);
    if (!check.remedy.empty()) item.set("remedy", check.remedy);
    checks.push_back(std::move(item));
  }
  json::Object missing;
  for (const auto& [what, why] : report.missing) missing.emplace_back(what, why);
  json::Array elsewhere;
  for (const doctor::Elsewhere& one : report.elsewhere)
    elsewhere.emplace_back(
        json::Object{{"input", one.input}, {"what", one.what}, {"command", one.command}});
  return json::Object{{"format", 1},
                      {"checks", std::move(checks)},
                      {"not_read", std::move(missing)},
                      {"elsewhere", std::move(elsewhere)}};
}

}  // namespace gdr::report
