#include "src/report/validate_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/report/html.hpp"
#include "src/report/names.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

using Results = std::vector<const study::CaseResult*>;

constexpr double chart_width = 640;
constexpr double chart_height = 420;
constexpr double margin = 52;
// The chart shows ratios from a quarter to four.
constexpr double most_ratio = 4;

std::string unit(const study::PublishedCase& published) {
  return study::is_bandwidth(published.metric) ? "GB/s" : "us";
}

double y_of(double ratio) {
  const double clipped = std::clamp(ratio, 1 / most_ratio, most_ratio);
  return margin +
         (chart_height - 2 * margin) * (0.5 - std::log(clipped) / (2 * std::log(most_ratio)));
}

/// One column per case, category by category: predicted over measured as a dot, the range as a
/// line.
std::string chart(const std::map<std::string, Results>& categories, std::size_t count) {
  std::string svg =
      fmt::format("<svg viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" role=\"img\">\n",
                  chart_width, chart_height + 44);
  for (const double ratio : {0.5, 0.7, 0.9, 1.0, 1.1, 1.3, 2.0})
    svg += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/><text x=\"{}\" "
        "y=\"{:.1f}\" class=\"axis\">{:g}</text>\n",
        margin, chart_width - 8, y_of(ratio), y_of(ratio), ratio == 1 ? "one" : "grid", margin - 34,
        y_of(ratio) + 4, ratio);
  const double step =
      (chart_width - margin - 16) / static_cast<double>(std::max<std::size_t>(1, count));
  double x = margin + 8;
  double label = 0;
  for (const auto& [name, results] : categories) {
    // Names of small categories would overlap.
    label = std::max(x, label + 16);
    svg += fmt::format(
        "<text x=\"{0:.1f}\" y=\"{1}\" class=\"axis\" text-anchor=\"end\" transform=\"rotate(-50 "
        "{0:.1f} {1})\">{2}</text>\n",
        label + 4, chart_height - 40, html_escaped(name));
    for (const study::CaseResult* r : results) {
      const double measured = r->published->measured;
      if (r->high > 0)
        svg += fmt::format(
            "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1:.1f}\" y2=\"{2:.1f}\" class=\"range\"/>\n",
            x, y_of(r->low / measured), y_of(r->high / measured));
      const bool beyond = std::abs(std::log(r->predicted / measured)) > std::log(most_ratio);
      if (beyond)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"axis\">{:.2g}</text>\n", x + 5,
                           y_of(r->predicted / measured) + 4, r->predicted / measured);
      svg += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" class=\"dot\"><title>{}: {} {} predicted, "
          "{} measured</title></circle>\n",
          x, y_of(r->predicted / measured), html_escaped(r->published->name),
          short_number(r->predicted), unit(*r->published), short_number(measured));
      x += step;
    }
  }
  return svg + "</svg>\n";
}

std::string rows(const Results& results) {
  std::string text;
  for (const study::CaseResult* r : results)
    text += fmt::format(
        "<tr><td title=\"{}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{:+.0f} "
        "%</td><td>{}</td><td class=\"left\">{}</td></tr>\n",
        html_escaped(r->published->source), html_escaped(r->published->name),
        short_number(r->predicted), short_number(r->published->measured), unit(*r->published),
        std::abs(r->error()) > 0.3 ? "far" : "", r->error() * 100,
        r->high > 0 ? fmt::format("{} to {}", short_number(r->low), short_number(r->high)) : "",
        html_escaped(report::name(*r->hardware, r->bottleneck)));
  return text;
}

std::string section(const std::string& title, const Results& results) {
  std::map<std::string, Results> categories;
  for (const study::CaseResult* result : results)
    categories[result->published->category].push_back(result);
  const study::Errors errors = study::errors_of(results);
  std::string text = fmt::format(
      "<h2>{}</h2>\n<p>{} cases, |error| {:.1f} % in the median, {:.1f} % at the 90th "
      "percentile.</p>\n",
      title, errors.count, errors.median * 100, errors.percentile90 * 100);
  text += chart(categories, results.size());
  for (const auto& [name, some] : categories) {
    const study::Errors of = study::errors_of(some);
    text += fmt::format(
        "<h3>{}: {} cases, median {:.1f} "
        "%</h3>\n<table><tr><th>case</th><th>predicted</th><th>measured</th><th></th><th>error</"
        "th><th>range</th>"
        "<th class=\"left\">limited by</th></tr>\n{}</table>\n",
        html_escaped(name), of.count, of.median * 100, rows(some));
  }
  return text;
}

}  // namespace

std::string to_html(const Validation& run) {
  const auto& [validation, calibration, all, ranges] = run;
  std::string body = fmt::format(
      "<p>Predicted over measured, one dot per case{}. 1 is right; what lies beyond {} is drawn at "
      "the edge, with its number.</p>\n",
      ranges ? "; a line is the stated range" : "", most_ratio);
  body += section("Validation: figures that no parameter was fitted to", validation);
  if (!calibration.empty())
    body += section("Calibration: figures that parameters may rest on", calibration);
  body += "<h2>Left out</h2>\n<table><tr><th>record</th><th class=\"left\">reason</th></tr>\n";
  for (const study::LeftOut& left : all.left_out)
    body += fmt::format("<tr><td>{}</td><td class=\"left\">{}</td></tr>\n", html_escaped(left.name),
                        html_escaped(left.reason));
  return html_page("Predicted and measured", body + "</table>\n");
}

}  // namespace gdr::report
