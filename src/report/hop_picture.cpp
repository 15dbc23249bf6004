#include "src/report/hop_picture.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "src/report/html.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

constexpr double box_width = 62;
constexpr double box_height = 24;
constexpr double aside = 4;  // offset of each direction of a link from the middle

struct Point {
  double x = 0;
  double y = 0;
};

using Box = TreeLayout::Box;

bool joined(const Box& a, const Box& b) {
  const auto leads_to = [](const Box& from, const Box& to) {
    return std::find(from.joined.begin(), from.joined.end(), to.name) != from.joined.end();
  };
  return leads_to(a, b) || leads_to(b, a);
}

/// The height of a line around the boxes between its ends: below all for the network, above for
/// sockets and far memory, below for links outside the tree (NVLink).
std::optional<double> detour(const Box& a, const Box& b) {
  if (a.kind == "fabric") return a.y;
  if (b.kind == "fabric") return b.y;
  const bool row_of_sockets = a.y == b.y && (a.kind == "cpu" || a.kind == "memory") &&
                              (b.kind == "cpu" || b.kind == "memory");
  if (row_of_sockets && std::abs(a.x - b.x) > memory_column) return a.y - box_height;
  return joined(a, b) ? std::nullopt : std::optional(std::max(a.y, b.y) + box_height);
}

/// A line from border to border. `shift` moves it aside, with opposite signs for opposite
/// directions.
std::vector<Point> way(const Box& a, const Box& b, double shift) {
  const double dx = b.x - a.x;
  const double dy = b.y - a.y;
  if (const auto level = detour(a, b)) {
    const double border = *level > std::min(a.y, b.y) ? box_height / 2 : -box_height / 2;
    const double side = dx > 0 ? 1 : -1;
    if (a.kind == "fabric")
      return {{a.x + side * box_width / 2, *level + shift},
              {b.x + shift, *level + shift},
              {b.x + shift, b.y + border}};
    if (b.kind == "fabric")
      return {{a.x + shift, a.y + border},
              {a.x + shift, *level + shift},
              {b.x - side * box_width / 2, *level + shift}};
    return {{a.x + shift, a.y + border},
            {a.x + shift, *level + shift},
            {b.x + shift, *level + shift},
            {b.x + shift, b.y + border}};
  }
  const double length = std::max(1.0, std::hypot(dx, dy));
  const Point normal{-dy / length * std::abs(shift), dx / length * std::abs(shift)};
  const double border = std::min(dx == 0 ? 1 : box_width / 2 / std::abs(dx),
                                 dy == 0 ? 1 : box_height / 2 / std::abs(dy));
  return {{a.x + dx * border + normal.x, a.y + dy * border + normal.y},
          {b.x - dx * border + normal.x, b.y - dy * border + normal.y}};
}

struct Label {
  Point at;
  const char* anchor;
};

/// The label's place: beside the line, outside a tree and inside the network; the labels of a
/// link's two directions at different heights.
Label label_of(const Box& a, const Box& b, const std::vector<Point>& points) {
  constexpr double gap = aside + 10;
  const bool first = a.name < b.name;
  if (a.kind == "fabric" || b.kind == "fabric") {
    const Box& nic = a.kind == "fabric" ? b : a;
    const Box& fabric = a.kind == "fabric" ? a : b;
    const bool right = nic.x < fabric.x;
    return {{nic.x + (right ? gap : -gap), nic.y + box_height / 2 + (first ? 14 : 27)},
            right ? "start" : "end"};
  }
  if (points.size() > 2) {
    const bool below = points[1].y > points[0].y;
    return {{(points[1].x + points[2].x) / 2,
             points[1].y + (below ? (first ? 13 : 33) : (first ? -5 : -17))},
            "middle"};
  }
  if (a.y == b.y) return {{(a.x + b.x) / 2, a.y + (a.x < b.x ? aside + 13 : -aside - 5)}, "middle"};
  const bool up = a.y > b.y;
  const Box& lower = up ? a : b;
  const Box& upper = up ? b : a;
  const double share = up ? 0.4 : 0.65;  // of the line, from its upper end
  const bool right = lower.x >= upper.x;
  // A slanted line continues beside the word.
  const double slant = std::abs(lower.x - upper.x) / (lower.y - upper.y) * 5;
  return {{upper.x + (lower.x - upper.x) * share + (right ? gap + slant : -gap - slant),
           upper.y + (lower.y - upper.y) * share + 4},
          right ? "start" : "end"};
}

std::string arrow_svg(const TreeLayout& layout, const HopArrow& arrow) {
  const Box& a = *layout.find(arrow.from);
  const Box& b = *layout.find(arrow.to);
  const std::vector<Point> points = way(a, b, a.name < b.name ? aside : -aside);
  std::string list;
  for (const Point& point : points)
    list += fmt::format("{}{:.1f},{:.1f}", list.empty() ? "" : " ", point.x, point.y);
  const std::string steps = fmt::format("{}", fmt::join(arrow.steps, ","));
  const std::string rate =
      arrow.bandwidth ? short_number(arrow.bandwidth->gigabytes_per_second()) : "";
  const std::string title =
      fmt::format("{} to {}, step {}{}{}", arrow.from, arrow.to, steps,
                  rate.empty() ? "" : ": " + rate + " GB/s", arrow.limits ? ", the limit" : "");
  const Label label = label_of(a, b, points);
  return fmt::format(
      "<polyline points=\"{0}\" fill=\"none\" class=\"arrow{1}\" "
      "marker-end=\"url(#head{9})\"><title>{2}</title></polyline>\n"
      "<text x=\"{3:.1f}\" y=\"{4:.1f}\" text-anchor=\"{5}\" class=\"rate{1}\">{6}: "
      "{7}{8}</text>\n",
      list, arrow.limits ? " limit" : "", html_escaped(title), label.at.x, label.at.y, label.anchor,
      steps, rate, arrow.limits ? " limit" : "", arrow.limits ? "-limit" : "");
}

std::string boxes_svg(const TreeLayout& layout, const std::set<std::string>& touched,
                      const std::set<std::string>& limiting) {
  std::string svg;
  for (const Box& box : layout.boxes) {
    const bool limit = limiting.contains(box.name);
    svg += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"4\" "
        "class=\"{}{}{}\"><title>{}{}</title></rect>\n",
        box.x - box_width / 2, box.y - box_height / 2, box_width, box_height, box.kind,
        touched.contains(box.name) ? " on" : "", limit ? " limit" : "", html_escaped(box.title),
        limit ? ", the limit" : "");
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n", box.x,
                       box.y + 4, html_escaped(box.label));
  }
  return svg;
}

}  // namespace

std::vector<HopArrow> arrows_of(const sim::Explanation& path, const TreeLayout& layout) {
  std::vector<HopArrow> arrows;
  for (std::size_t step = 0; step < path.stages.size(); ++step) {
    std::string last;
    std::optional<Bandwidth> least;  // since the last box
    bool limits = false;
    for (const sim::HopReport& hop : path.stages[step].hops) {
      if (layout.find(hop.from) != nullptr) last = hop.from;
      if (hop.bandwidth && (!least || *hop.bandwidth < *least)) least = hop.bandwidth;
      limits = limits || hop.limits;
      if (layout.find(hop.to) == nullptr) continue;
      if (!last.empty() && last != hop.to) {
        auto known = std::find_if(arrows.begin(), arrows.end(), [&](const HopArrow& arrow) {
          return arrow.from == last && arrow.to == hop.to;
        });
        if (known == arrows.end())
          known = arrows.insert(arrows.end(), {last, hop.to, {}, {}, false});
        known->steps.insert(step + 1);
        known->limits = known->limits || limits;
        if (least && (!known->bandwidth || *least < *known->bandwidth)) known->bandwidth = least;
      }
      last = hop.to;
      least.reset();
      limits = false;
    }
  }
  return arrows;
}

std::set<std::string> limiting_boxes(const sim::Explanation& path, const TreeLayout& layout,
                                     const std::vector<HopArrow>& arrows) {
  std::set<std::string> boxes;
  if (std::any_of(arrows.begin(), arrows.end(), [](const HopArrow& arrow) { return arrow.limits; }))
    return boxes;
  for (const Box& box : layout.boxes)
    if (std::find(path.bottleneck_at.begin(), path.bottleneck_at.end(), box.name) !=
        path.bottleneck_at.end())
      boxes.insert(box.name);
  return boxes;
}

std::string tree_svg(const TreeLayout& layout, const std::vector<HopArrow>& arrows,
                     const std::set<std::string>& limiting) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
      "height=\"{1:.0f}\" role=\"img\">\n"
      "<defs><marker id=\"head\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"4\" "
      "markerHeight=\"4\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" fill=\"#d9541e\"/></marker>"
      "<marker id=\"head-limit\" viewBox=\"0 0 6 6\" refX=\"5\" refY=\"3\" markerWidth=\"3\" "
      "markerHeight=\"3\" orient=\"auto\"><path d=\"M0 0L6 3L0 6z\" "
      "fill=\"#b3261e\"/></marker></defs>\n",
      layout.width, layout.height);
  const auto used = [&](const Box& a, const Box& b) {
    return std::any_of(arrows.begin(), arrows.end(), [&](const HopArrow& arrow) {
      return (arrow.from == a.name && arrow.to == b.name) ||
             (arrow.from == b.name && arrow.to == a.name);
    });
  };
  for (const Box& box : layout.boxes)
    for (const Box& other : layout.boxes) {
      if (&other <= &box || !joined(box, other) || used(box, other)) continue;
      std::string list;
      for (const Point& point : way(box, other, 0))
        list += fmt::format("{}{:.1f},{:.1f}", list.empty() ? "" : " ", point.x, point.y);
      svg += fmt::format("<polyline points=\"{}\" fill=\"none\" class=\"link\"/>\n", list);
    }
  std::set<std::string> touched;
  for (const HopArrow& arrow : arrows) touched.insert({arrow.from, arrow.to});
  svg += boxes_svg(layout, touched, limiting);
  for (const HopArrow& arrow : arrows) svg += arrow_svg(layout, arrow);
  return svg + "</svg>\n";
}

}  // namespace gdr::report
