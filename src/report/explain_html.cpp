#include "src/report/explain_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "src/report/hop_picture.hpp"
#include "src/report/html.hpp"
#include "src/report/names.hpp"
#include "src/report/output.hpp"
#include "src/report/tree_layout.hpp"

namespace gdr::cli {
namespace {

double end_of(const std::vector<TracedPath>& traced) {
  double end = 0;
  for (const TracedPath& path : traced) end = std::max(end, path.timeline.end.us());
  return end;
}

/// The steps of a path on the axis that all paths share. Pieces that touch are drawn as one bar.
std::string time_svg(const Hardware& hardware, const TracedPath& path, double end) {
  constexpr double left = 250;
  constexpr double right = 915;
  constexpr double row = 20;
  const double height = static_cast<double>(path.timeline.steps.size()) * row + 26;
  std::string svg = fmt::format(
      "<svg viewBox=\"0 0 960 {0:.0f}\" width=\"960\" height=\"{0:.0f}\" role=\"img\">\n", height);
  const auto x = [&](double us) { return left + (right - left) * us / end; };
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\" class=\"grid\"/><text "
        "x=\"{0:.1f}\" y=\"{2:.1f}\" class=\"axis\" text-anchor=\"middle\">{3} us</text>\n",
        x(end * i / 4), height - 22, height - 8, short_number(end * i / 4));
  for (std::size_t s = 0; s < path.timeline.steps.size(); ++s) {
    const double y = static_cast<double>(s) * row + 4;
    svg += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}</text>\n", y + 12,
                       html_escaped(sim::name(hardware, path.timeline.steps[s].id).substr(0, 40)));
    double from = -1;
    double to = -1;
    const auto flush = [&] {
      if (from >= 0)
        svg += fmt::format(
            "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"13\" class=\"bar\"/>\n",
            x(from), y, std::max(0.8, x(to) - x(from)));
    };
    for (const sim::Span& span : path.timeline.spans) {
      if (span.stage != s) continue;
      if (from >= 0 && x(span.begin.us()) - x(to) < 0.7) {
        to = span.end.us();
        continue;
      }
      flush();
      from = span.begin.us();
      to = span.end.us();
    }
    flush();
  }
  return svg + "</svg>\n";
}

std::string comparison_table(const Hardware& hardware, const std::vector<sim::Explanation>& paths) {
  std::string text = "<table><tr><th></th>";
  for (const sim::Explanation& path : paths)
    text += fmt::format("<th>{}</th>", to_string(path.prediction.transfer.path));
  text += "</tr>\n";
  const auto row = [&](const char* name, auto value) {
    text += fmt::format("<tr><td>{}</td>", name);
    for (const sim::Explanation& path : paths)
      text += fmt::format("<td>{}</td>", html_escaped(value(path.prediction)));
    text += "</tr>\n";
  };
  row("latency, us", [](const sim::Prediction& p) { return short_number(p.latency.us()); });
  row("done (the sender has its completion), us",
      [](const sim::Prediction& p) { return short_number(p.completion.us()); });
  row("GB/s, steady",
      [](const sim::Prediction& p) { return short_number(p.bandwidth.gigabytes_per_second()); });
  row("limited by", [&](const sim::Prediction& p) { return sim::name(hardware, p.bottleneck); });
  row("host memory passes",
      [](const sim::Prediction& p) { return fmt::format("{:g}", p.host_memory_bytes_per_byte); });
  row("PCIe bytes per byte",
      [](const sim::Prediction& p) { return fmt::format("{:.2f}", p.pcie_bytes_per_byte); });
  row("cores at that rate",
      [](const sim::Prediction& p) { return fmt::format("{:.2f}", p.cpu_cores); });
  return text + "</table>\n";
}

std::string steps_table(const Hardware& hardware, const sim::Explanation& path) {
  std::string text =
      "<table><tr><th>step</th><th>begins, us</th><th>ends, us</th><th>bytes</th><th "
      "class=\"left\">way</th></tr>\n";
  int number = 0;
  for (const sim::StageReport& stage : path.stages) {
    std::string way;
    for (const sim::HopReport& hop : stage.hops) {
      const std::string rate =
          hop.bandwidth ? ", " + short_number(hop.bandwidth->gigabytes_per_second()) + " GB/s" : "";
      way += (way.empty() ? html_escaped(hop.from) : "") +
             fmt::format(" &rarr; {} <small{}>({}{})</small>", html_escaped(hop.to),
                         hop.limits ? " class=\"far\"" : "", html_escaped(hop.link), rate);
    }
    text += fmt::format(
        "<tr><td>{}. {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"left\">{}</td></tr>\n",
        ++number, html_escaped(sim::name(hardware, stage.step)),
        short_number(stage.times.begin.us()), short_number(stage.times.end.us()),
        stage.mover ? to_string(stage.bytes) : "", way);
  }
  return text + "</table>\n";
}

constexpr const char* style_and_legend =
    "<style>.link{stroke:#c3ccd6}.arrow{stroke:#d9541e;stroke-width:2.5}.arrow.limit{stroke:#"
    "b3261e;stroke-width:4}"
    "svg text.rate{font-size:10px;fill:#8a3a12;paint-order:stroke;stroke:#fff;stroke-width:3px}svg "
    "text.rate.limit{fill:#b3261e;font-weight:700}"
    "rect{fill:#f3f6f9;stroke:#9aa8b6}rect.on{fill:#fde5d8;stroke:#d9541e}rect.limit{stroke:#"
    "b3261e;stroke-width:3.5}rect.bar{fill:#1f5fa8;stroke:none}</style>\n"
    "<p>One message alone. Arrows show where its bytes go; beside each, the steps of the table "
    "below that take it, and the GB/s that the link carries in that "
    "direction (PCIe and network: headers included). Red, with the word limit: what holds the path "
    "back in the steady state; where that is no link, the device "
    "it is about has a red frame. The bars show when each step works on a piece of the message; a "
    "piece is at the next step some time after.</p>\n";

}  // namespace

std::string explanation_to_html(const Hardware& hardware,
                                const std::vector<sim::Explanation>& paths,
                                const std::vector<TracedPath>& traced, const std::string& title) {
  std::set<std::string> shown;
  for (const sim::Explanation& path : paths)
    for (const sim::StageReport& stage : path.stages)
      for (const sim::HopReport& hop : stage.hops) shown.insert({hop.from, hop.to});
  const TreeLayout layout = lay_out(hardware.graph(), paths.front().prediction.transfer, shown);
  const double end = end_of(traced);
  std::string body = style_and_legend;
  body += comparison_table(hardware, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    body += fmt::format("<h2>{}</h2>\n", to_string(paths[i].prediction.transfer.path));
    body += fmt::format("<p>Limited by {}.</p>\n",
                        html_escaped(sim::name(hardware, paths[i].prediction.bottleneck)));
    const std::vector<HopArrow> arrows = arrows_of(paths[i], layout);
    body += tree_svg(layout, arrows, limiting_boxes(paths[i], layout, arrows));
    body += time_svg(hardware, traced[i], end);
    body += steps_table(hardware, paths[i]);
  }
  return html_page(title, body);
}

}  // namespace gdr::cli
