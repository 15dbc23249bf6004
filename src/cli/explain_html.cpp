#include "cli/explain_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/html.hpp"
#include "cli/output.hpp"
#include "cli/tree_layout.hpp"

namespace gdr::cli {
namespace {

constexpr double box_width = 62;
constexpr double box_height = 24;

/// Names of the tree's boxes that a hop ends at: a bridge that only the graph has stands for nothing here.
std::string box_of(const std::string& label, const TreeLayout& layout) { return layout.find(label) != nullptr ? label : std::string(); }

using Ends = std::set<std::pair<std::string, std::string>>;

Ends hops_of(const sim::Explanation& path, const TreeLayout& layout) {
  Ends hops;
  for (const sim::StageReport& stage : path.stages) {
    std::string last;
    for (const sim::HopReport& hop : stage.hops) {
      const std::string from = box_of(hop.from, layout);
      const std::string to = box_of(hop.to, layout);
      if (!from.empty()) last = from;
      if (!to.empty() && !last.empty() && last != to) hops.insert({last, to});
      if (!to.empty()) last = to;
    }
  }
  return hops;
}

std::string tree_svg(const TreeLayout& layout, const Ends& hops) {
  const auto used = [&](const std::string& a, const std::string& b) { return hops.contains({a, b}) || hops.contains({b, a}); };
  std::string svg = fmt::format("<svg viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" role=\"img\">\n", layout.width, layout.height);
  const auto line = [&](const TreeLayout::Box& a, const TreeLayout::Box& b, const char* style) {
    // Lines to the network go down first, those between sockets above what stands between them.
    const double level = a.kind == "fabric" ? a.y : a.kind == "cpu" && b.kind == "cpu" ? a.y - box_height : 0;
    if (level > 0)
      svg += fmt::format("<path d=\"M{:.1f} {:.1f}V{:.1f}H{:.1f}V{:.1f}\" fill=\"none\" class=\"{}\"/>\n", b.x, b.y, level, a.x, a.y, style);
    else
      svg += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", a.x, a.y, b.x, b.y, style);
  };
  for (const TreeLayout::Box& box : layout.boxes)
    for (const std::string& other : box.joined)
      if (const TreeLayout::Box* to = layout.find(other)) line(box, *to, used(box.name, other) ? "hop" : "link");
  // Hops beside the tree (NVLink, a detour that the tree has no line for).
  for (const auto& [from, to] : hops) {
    const TreeLayout::Box* a = layout.find(from);
    const TreeLayout::Box* b = layout.find(to);
    if (std::find(a->joined.begin(), a->joined.end(), to) == a->joined.end() && std::find(b->joined.begin(), b->joined.end(), from) == b->joined.end()) line(*a, *b, "hop");
  }
  std::set<std::string> touched;
  for (const auto& [from, to] : hops) touched.insert({from, to});
  for (const TreeLayout::Box& box : layout.boxes) {
    svg += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"4\" class=\"{}{}\"><title>{}</title></rect>\n", box.x - box_width / 2,
                       box.y - box_height / 2, box_width, box_height, box.kind, touched.contains(box.name) ? " on" : "", html_escaped(box.title));
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", box.x, box.y + 4, html_escaped(box.label));
  }
  return svg + "</svg>\n";
}

double end_of(const std::vector<TracedPath>& traced) {
  double end = 0;
  for (const TracedPath& path : traced) end = std::max(end, path.timeline.end.us());
  return end;
}

/// The steps of a path on the axis that all paths share. Pieces that touch are drawn as one bar.
std::string time_svg(const TracedPath& path, double end) {
  constexpr double left = 250;
  constexpr double right = 915;
  constexpr double row = 20;
  const double height = static_cast<double>(path.timeline.steps.size()) * row + 26;
  std::string svg = fmt::format("<svg viewBox=\"0 0 960 {0:.0f}\" width=\"960\" height=\"{0:.0f}\" role=\"img\">\n", height);
  const auto x = [&](double us) { return left + (right - left) * us / end; };
  for (int i = 0; i <= 4; ++i)
    svg += fmt::format("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"0\" y2=\"{1:.1f}\" class=\"grid\"/><text x=\"{0:.1f}\" y=\"{2:.1f}\" class=\"axis\" text-anchor=\"middle\">{3} us</text>\n",
                       x(end * i / 4), height - 22, height - 8, short_number(end * i / 4));
  for (std::size_t s = 0; s < path.timeline.steps.size(); ++s) {
    const double y = static_cast<double>(s) * row + 4;
    svg += fmt::format("<text x=\"0\" y=\"{:.1f}\">{}</text>\n", y + 12, html_escaped(path.timeline.steps[s].name.substr(0, 40)));
    double from = -1;
    double to = -1;
    const auto flush = [&] {
      if (from >= 0) svg += fmt::format("<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"13\" class=\"bar\"/>\n", x(from), y, std::max(0.8, x(to) - x(from)));
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

std::string comparison_table(const std::vector<sim::Explanation>& paths) {
  std::string text = "<table><tr><th></th>";
  for (const sim::Explanation& path : paths) text += fmt::format("<th>{}</th>", to_string(path.prediction.transfer.path));
  text += "</tr>\n";
  const auto row = [&](const char* name, auto value) {
    text += fmt::format("<tr><td>{}</td>", name);
    for (const sim::Explanation& path : paths) text += fmt::format("<td>{}</td>", html_escaped(value(path.prediction)));
    text += "</tr>\n";
  };
  row("latency, us", [](const sim::Prediction& p) { return short_number(p.latency.us()); });
  row("done (the sender has its completion), us", [](const sim::Prediction& p) { return short_number(p.completion.us()); });
  row("GB/s, steady", [](const sim::Prediction& p) { return short_number(p.bandwidth.gigabytes_per_second()); });
  row("limited by", [](const sim::Prediction& p) { return p.bottleneck; });
  row("host memory passes", [](const sim::Prediction& p) { return fmt::format("{:g}", p.host_memory_bytes_per_byte); });
  row("PCIe bytes per byte", [](const sim::Prediction& p) { return fmt::format("{:.2f}", p.pcie_bytes_per_byte); });
  row("cores at that rate", [](const sim::Prediction& p) { return fmt::format("{:.2f}", p.cpu_cores); });
  return text + "</table>\n";
}

std::string steps_table(const sim::Explanation& path) {
  std::string text = "<table><tr><th>step</th><th>begins, us</th><th>ends, us</th><th>bytes</th><th class=\"left\">way</th></tr>\n";
  for (const sim::StageReport& stage : path.stages) {
    std::string way;
    for (const sim::HopReport& hop : stage.hops) way += (way.empty() ? hop.from : "") + fmt::format(" &rarr; {} <small>({})</small>", html_escaped(hop.to), html_escaped(hop.link));
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"left\">{}</td></tr>\n", html_escaped(stage.name), short_number(stage.times.begin.us()),
                        short_number(stage.times.end.us()), stage.mover ? to_string(stage.bytes) : "", way);
  }
  return text + "</table>\n";
}

}  // namespace

std::string explanation_to_html(const Graph& graph, const std::vector<sim::Explanation>& paths, const std::vector<TracedPath>& traced, const std::string& title) {
  std::set<std::string> shown;
  for (const sim::Explanation& path : paths)
    for (const sim::StageReport& stage : path.stages)
      for (const sim::HopReport& hop : stage.hops) shown.insert({hop.from, hop.to});
  const TreeLayout layout = lay_out(graph, paths.front().prediction.transfer, shown);
  const double end = end_of(traced);
  std::string body =
      "<style>.link{stroke:#c3ccd6}.hop{stroke:#d9541e;stroke-width:3}rect{fill:#f3f6f9;stroke:#9aa8b6}rect.on{fill:#fde5d8;stroke:#d9541e}rect.bar{fill:#1f5fa8;stroke:none}</style>\n"
      "<p>One message alone. The trees show where its bytes go (thick lines); the bars show when each step works on a piece of it; a piece is at the next step some time after.</p>\n";
  body += comparison_table(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    body += fmt::format("<h2>{}</h2>\n", to_string(paths[i].prediction.transfer.path));
    body += tree_svg(layout, hops_of(paths[i], layout));
    body += time_svg(traced[i], end);
    body += steps_table(paths[i]);
  }
  return html_page(title, body);
}

}  // namespace gdr::cli
