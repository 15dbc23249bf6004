// The picture of gdr explain --html, from explanations written by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "src/common/xml_tree.hpp"
#include "src/report/explain_html.hpp"
#include "src/report/hop_picture.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::report {
namespace {

const std::string project = GDR_PROJECT_DIR;

struct Lab {
  Topology topology =
      load_topology(project + "/topologies/clusters/two-dual-socket-4gpu-1nic.json");
  Graph graph{topology};
};

sim::HopReport hop(const std::string& from, const std::string& to,
                   std::optional<double> gigabytes_per_second, bool limits = false) {
  sim::HopReport report;
  report.from = from;
  report.to = to;
  report.link = "link";
  if (gigabytes_per_second) report.bandwidth = Bandwidth{*gigabytes_per_second * 1e9};
  report.limits = limits;
  return report;
}

/// From h0's GPU 2 into memory of its socket, from there to the other socket's NIC and on to the
/// network.
sim::Explanation staged(const Lab& lab, const std::vector<std::string>& limit_at,
                        bool memory_limits) {
  sim::Explanation path;
  path.prediction.transfer.from = find_device(lab.topology, "h0/gpu2");
  path.prediction.transfer.to = find_device(lab.topology, "h1/gpu2");
  path.prediction.transfer.path = PathKind::staged;
  path.prediction.bottleneck = sim::ResourceId{sim::ResourceKind::memory, lab.graph.memory(0, 1)};
  path.bottleneck_at = limit_at;
  path.stages.resize(4);
  path.stages[0].step = {.kind = sim::StepKind::launch,
                         .by = lab.graph.device(path.prediction.transfer.from)};
  path.stages[1].hops = {hop("h0/gpu2", "h0/port-of-gpu2", 12.8),
                         hop("h0/port-of-gpu2", "h0/cpu1", 40.0),
                         hop("h0/cpu1", "h0/numa1", 60.0, memory_limits)};
  path.stages[2].hops = {hop("h0/numa1", "h0/cpu1", 60.0, memory_limits),
                         hop("h0/cpu1", "h0/cpu0", {}), hop("h0/cpu0", "h0/port-of-nic0", 40.0),
                         hop("h0/port-of-nic0", "h0/nic0", 25.2)};
  path.stages[3].hops = {hop("h0/nic0", "fabric", 25.0), hop("fabric", "h1/nic0", 25.0)};
  return path;
}

TreeLayout layout_of(const Lab& lab, const sim::Explanation& path) {
  std::set<std::string> shown;
  for (const sim::StageReport& stage : path.stages)
    for (const sim::HopReport& one : stage.hops) shown.insert({one.from, one.to});
  return lay_out(lab.graph, path.prediction.transfer, shown);
}

/// "FROM > TO: steps, GB/s, limit"
std::vector<std::string> words(const std::vector<HopArrow>& arrows) {
  std::vector<std::string> list;
  for (const HopArrow& arrow : arrows) {
    std::string text = arrow.from + " > " + arrow.to + ":";
    for (const std::size_t step : arrow.steps) text += " " + std::to_string(step);
    if (arrow.bandwidth)
      text += ", " + std::to_string(std::lround(arrow.bandwidth->gigabytes_per_second() * 10));
    list.push_back(text + (arrow.limits ? ", limit" : ""));
  }
  return list;
}

using Words = std::vector<std::string>;

TEST(HopPicture, ArrowsAreTheHopsBetweenBoxes) {
  const Lab lab;
  const sim::Explanation path = staged(lab, {"h0/numa1"}, true);
  const TreeLayout layout = layout_of(lab, path);
  EXPECT_EQ(
      words(arrows_of(path, layout)),
      (Words{"h0/gpu2 > h0/cpu1: 2, 128", "h0/cpu1 > h0/numa1: 2, 600, limit",
             "h0/numa1 > h0/cpu1: 3, 600, limit", "h0/cpu1 > h0/cpu0: 3",
             "h0/cpu0 > h0/nic0: 3, 252", "h0/nic0 > fabric: 4, 250", "fabric > h1/nic0: 4, 250"}))
      << "a port without a box is no end, and the least of what lies between counts";
  EXPECT_EQ(limiting_boxes(path, layout, arrows_of(path, layout)), std::set<std::string>{})
      << "an arrow is the limit";
}

TEST(HopPicture, ALimitThatIsNoLinkMarksItsDevice) {
  const Lab lab;
  for (const std::set<std::string>& boxes :
       {std::set<std::string>{"h0/nic0"}, {"h0/gpu2"}, {"h0/cpu0", "h0/cpu1"}, {}}) {
    const sim::Explanation path = staged(lab, {boxes.begin(), boxes.end()}, false);
    const TreeLayout layout = layout_of(lab, path);
    EXPECT_EQ(limiting_boxes(path, layout, arrows_of(path, layout)), boxes);
  }
  const sim::Explanation other = staged(lab, {"h0/port-of-gpu2"}, false);
  EXPECT_EQ(limiting_boxes(other, layout_of(lab, other), {}), std::set<std::string>{})
      << "what has no box marks none";
}

std::string attribute(const xml::Element& element, const std::string& name) {
  const std::string* value = element.attribute(name);
  return value != nullptr ? *value : "";
}

TEST(HopPicture, IsWholeAndStaysInItsFrame) {
  const Lab lab;
  const sim::Explanation path = staged(lab, {"h0/numa1"}, true);
  const TreeLayout layout = layout_of(lab, path);
  const std::vector<HopArrow> arrows = arrows_of(path, layout);
  const xml::Element svg = xml::parse(tree_svg(layout, arrows, {"h0/nic0"}), "svg");
  std::map<std::string, int> count;
  std::set<std::string> heads;
  for (const xml::Element& element : svg.children) {
    const std::string style = attribute(element, "class");
    ++count[element.tag + " " + style];
    if (element.tag == "rect" && style.ends_with(" limit")) ++count["limiting box"];
    for (const char* name : {"x", "y"})
      if (element.attribute(name) != nullptr) {
        const double at = std::stod(attribute(element, name));
        EXPECT_GE(at, 0) << name;
        EXPECT_LE(at, name[0] == 'x' ? layout.width : layout.height) << name;
      }
    if (style.starts_with("rate")) {
      // Text has no width here: assume 7 per letter of 10 pixels; "2: 60.00 limit" is the longest.
      const double width = 7 * 14;
      const double at = std::stod(attribute(element, "x"));
      EXPECT_GE(attribute(element, "text-anchor") == "end" ? at - width : at, 0);
      EXPECT_LE(attribute(element, "text-anchor") == "start" ? at + width : at, layout.width);
    }
    if (element.attribute("marker-end") != nullptr) heads.insert(attribute(element, "marker-end"));
  }
  EXPECT_EQ(count["polyline arrow"] + count["polyline arrow limit"],
            static_cast<int>(arrows.size()));
  EXPECT_EQ(count["polyline arrow limit"], 2);
  EXPECT_EQ(count["text rate limit"], 2);
  EXPECT_EQ(count["text rate"], static_cast<int>(arrows.size()) - 2);
  EXPECT_EQ(count["limiting box"], 1);
  // Every head that an arrow refers to is defined.
  std::set<std::string> defined;
  for (const xml::Element& marker : svg.children.front().children)
    defined.insert("url(#" + attribute(marker, "id") + ")");
  EXPECT_EQ(heads, defined);
}

TEST(HopPicture, ThePageSaysStepsAndRates) {
  const Lab lab;
  const ModelLibrary models(project + "/models");
  sim::Explanation path = staged(lab, {"h0/numa1"}, true);
  TracedPath traced{"staged", {}};
  traced.timeline.end = Duration{1e-6};
  const std::string page =
      explanation_to_html(Hardware(lab.graph, models), {path}, {traced}, "title");
  EXPECT_NE(page.find("<p>Limited by h0/numa1 memory.</p>"), std::string::npos);
  EXPECT_NE(page.find("1. launch copy on h0/gpu2"), std::string::npos);
  EXPECT_NE(page.find("<small class=\"far\">(link, 60.00 GB/s)</small>"), std::string::npos);
  EXPECT_NE(page.find(">2: 60.00 limit</text>"), std::string::npos);
}

}  // namespace
}  // namespace gdr::report
