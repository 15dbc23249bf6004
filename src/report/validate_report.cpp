#include "src/report/validate_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/report/names.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

using Results = std::vector<const study::CaseResult*>;

std::string unit(const study::PublishedCase& published) {
  return study::is_bandwidth(published.metric) ? "GB/s" : "us";
}

std::string percent(double share) { return fmt::format("{:+.0f} %", share * 100); }

/// Three digits: the error of a prediction is not known more precisely.
std::string rough_number(double value) {
  const int decimals = std::clamp(2 - static_cast<int>(std::floor(std::log10(value))), 0, 6);
  return fmt::format("{:.{}f}", value, decimals);
}

std::string range_text(const study::CaseResult& result) {
  if (result.high <= 0) return {};
  return fmt::format("{}..{}{}", rough_number(result.low), rough_number(result.high),
                     result.in_range() ? "" : "!");
}

/// A name that does not fit beside the figures in 80 columns stands on a line of its own above
/// them.
std::string case_table(const Results& results) {
  constexpr std::size_t longest_name = 35;
  std::vector<std::vector<std::string>> rows{{"case", "pred.", "meas.", "unit", "error", "range"}};
  std::vector<std::string> above(1);
  for (const study::CaseResult* r : results) {
    const std::string& name = r->published->name;
    const bool fits = name.size() <= longest_name;
    above.push_back(fits ? "" : name + "\n");
    rows.push_back({fits ? name : "", short_number(r->predicted),
                    short_number(r->published->measured), unit(*r->published), percent(r->error()),
                    range_text(*r)});
  }
  std::string text;
  const std::vector<std::string> lines = split(table(rows), '\n');
  for (std::size_t i = 0; i < rows.size(); ++i) text += above[i] + lines[i] + "\n";
  return text;
}

std::vector<std::string> summary_row(const std::string& name, const Results& results, bool ranges) {
  const study::Errors errors = study::errors_of(results);
  return {name,
          fmt::format("{}", errors.count),
          fmt::format("{:.1f} %", errors.median * 100),
          fmt::format("{:.1f} %", errors.percentile90 * 100),
          ranges ? fmt::format("{:.0f} %", errors.in_range * 100) : "",
          ranges ? fmt::format("{:.2f}", errors.range) : ""};
}

/// Category by category, in order of name.
std::map<std::string, Results> by_category(const Results& results) {
  std::map<std::string, Results> categories;
  for (const study::CaseResult* result : results)
    categories[result->published->category].push_back(result);
  return categories;
}

std::string summary(const Results& results, bool ranges) {
  std::vector<std::vector<std::string>> rows{
      {"category", "cases", "median |error|", "90 %", "in range", "high/low"}};
  for (const auto& [name, some] : by_category(results))
    rows.push_back(summary_row(name, some, ranges));
  rows.push_back(summary_row("all", results, ranges));
  return table(rows);
}

Results worst(Results results, std::size_t count) {
  std::stable_sort(results.begin(), results.end(), [](const auto* a, const auto* b) {
    return std::abs(a->error()) > std::abs(b->error());
  });
  results.resize(std::min(results.size(), count));
  return results;
}

}  // namespace

std::string to_text(const Validation& run) {
  const auto& [validation, calibration, all, ranges] = run;
  std::string text;
  for (const auto& [title, results] :
       {std::pair{"Validation: figures that no parameter was fitted to", validation},
        std::pair{"Calibration: figures that parameters may rest on", calibration}}) {
    if (results.empty()) continue;
    text += fmt::format("{}\n\n", title);
    for (const auto& [name, some] : by_category(results))
      text += fmt::format("{}\n{}\n", name, case_table(some));
    text += summary(results, ranges) + "\n";
    text += "pred., meas.: predicted and measured.\n";
    if (ranges)
      text +=
          "range: what the prediction may be off by; ! the measured value lies outside.\nin range: "
          "share of measured values inside; high/low: of the ranges, median.\n";
    text += "\n";
  }
  if (!validation.empty()) {
    text += "The worst of validation\n\n";
    for (const study::CaseResult* r : worst(validation, 10)) {
      text += wrapped(fmt::format("{} ({}): {}{}", r->published->name, percent(r->error()),
                                  short_number(r->predicted), " " + unit(*r->published)),
                      2) +
              "\n";
      if (const std::string limit = name(*r->hardware, r->bottleneck); !limit.empty())
        text += wrapped("  limited by " + limit, 4) + "\n";
      for (const std::string& estimate : r->estimates)
        text += wrapped("  estimate " + estimate, 4) + "\n";
    }
    text += "\n";
  }
  if (!all.left_out.empty()) {
    text += fmt::format("Left out, and why ({})\n\n", all.left_out.size());
    std::map<std::string, std::vector<std::string>> reasons;
    for (const study::LeftOut& left : all.left_out) reasons[left.reason].push_back(left.name);
    for (const auto& [reason, names] : reasons) {
      std::string list;
      for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
      text += wrapped(fmt::format("{}: {}", reason, list), 2) + "\n";
    }
  }
  return text;
}

namespace {

json::Value errors_to_json(const Results& results) {
  const study::Errors errors = study::errors_of(results);
  const bool ranges = errors.range > 0;
  return json::Object{{"cases", static_cast<std::int64_t>(errors.count)},
                      {"median", rounded(errors.median)},
                      {"percentile90", rounded(errors.percentile90)},
                      {"in_range", ranges ? rounded(errors.in_range) : json::Value()},
                      {"high_over_low", ranges ? rounded(errors.range) : json::Value()}};
}

}  // namespace

json::Value to_json(const Validation& run) {
  const auto& [validation, calibration, all, ranges] = run;
  json::Array cases;
  for (const Results* results : {&validation, &calibration})
    for (const study::CaseResult* r : *results) {
      const study::PublishedCase& p = *r->published;
      json::Value one(json::Object{{"name", p.name},
                                   {"category", p.category},
                                   {"use", p.calibration ? "calibration" : "validation"},
                                   {"platform", p.platform},
                                   {"metric", to_string(p.metric)},
                                   {"unit", unit(p)},
                                   {"predicted", rounded(r->predicted)},
                                   {"measured", rounded(p.measured)},
                                   {"error", rounded(r->error())}});
      if (r->high > 0) {
        one.set("low", rounded(r->low));
        one.set("high", rounded(r->high));
      }
      if (const std::string limit = name(*r->hardware, r->bottleneck); !limit.empty())
        one.set("bottleneck", limit);
      json::Array estimates;
      for (const std::string& estimate : r->estimates) estimates.emplace_back(estimate);
      if (!estimates.empty()) one.set("estimates", std::move(estimates));
      one.set("source", p.source);
      cases.push_back(std::move(one));
    }
  json::Object categories;
  for (const auto& [name, some] : by_category(validation))
    categories.emplace_back(name, errors_to_json(some));
  json::Array left_out;
  for (const study::LeftOut& left : all.left_out)
    left_out.emplace_back(json::Object{{"name", left.name}, {"reason", left.reason}});
  return json::Object{{"format", 1},
                      {"validation", errors_to_json(validation)},
                      {"calibration", errors_to_json(calibration)},
                      {"categories", std::move(categories)},
                      {"cases", std::move(cases)},
                      {"left_out", std::move(left_out)}};
}

}  // namespace gdr::report
