#include "src/report/show_dot.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/report/show_text.hpp"

namespace gdr::report {
namespace {

/// Inside double quotes a quote and a backslash need a backslash.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out + "\"";
}

std::string_view colour(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "palegreen";
    case DeviceKind::nic:
      return "lightskyblue";
    case DeviceKind::nvme:
      return "khaki";
    case DeviceKind::pci_switch:
      return "lightgrey";
    case DeviceKind::nvswitch:
      return "mediumaquamarine";
    case DeviceKind::host_bridge:
      return "gainsboro";
    case DeviceKind::other:
      break;
  }
  return "white";
}

class Drawing {
 public:
  explicit Drawing(const Host& host) : host_(host) {}

  std::string draw(std::string_view title) {
    out_ += fmt::format("  subgraph {} {{\n    label={}; style=rounded;\n",
                        quoted("cluster " + host_.name), quoted(title));
    for (const Socket& socket : host_.sockets) {
      const std::string label =
          socket.model.empty() ? socket.name : socket.name + "  " + socket.model;
      out_ += fmt::format("    subgraph {} {{\n      label={}; style=filled; fillcolor=white;\n",
                          quoted("cluster " + id(socket.name)), quoted(label));
      for (const NumaNode& numa : host_.numa_nodes)
        if (numa.socket == socket.name) draw_numa(numa);
      out_ += "    }\n";
    }
    draw_nvlinks();
    out_ += "  }\n";
    return std::move(out_);
  }

 private:
  [[nodiscard]] std::string id(std::string_view name) const {
    return fmt::format("{}/{}", host_.name, name);
  }

  void draw_numa(const NumaNode& numa) {
    out_ += fmt::format("      {} [label={}, shape=box3d, fillcolor=wheat];\n",
                        quoted(id(numa.name)), quoted(numa.name));
    draw_children(numa.name);
  }

  void draw_children(const std::string& parent) {
    for (const Device& device : host_.devices) {
      if (device.under != parent) continue;
      std::string label = quoted(device.name);
      for (const std::string& line : {device.model, device.address})
        if (!line.empty())
          label.insert(label.size() - 1, "\\n" + quoted(line).substr(1, quoted(line).size() - 2));
      out_ += fmt::format("      {} [label={}, fillcolor={}];\n", quoted(id(device.name)), label,
                          colour(device.kind));
      std::string edge = link_text(device);
      const bool redirects = device.acs && device.acs->redirects();
      if (redirects) edge += edge.empty() ? "ACS" : " ACS";
      out_ +=
          fmt::format("      {} -- {} [label={}{}];\n", quoted(id(parent)), quoted(id(device.name)),
                      quoted(edge), redirects ? ", color=red, fontcolor=red" : "");
      draw_children(device.name);
    }
  }

  /// NVLinks are given in words: the lines of a mesh would hide the PCIe tree.
  void draw_nvlinks() {
    std::string lines;
    for (const std::string& line : nvlink_lines(host_)) lines += "NVLink " + line + "\\l";
    if (!lines.empty())
      out_ += fmt::format("    {} [label=\"{}\", shape=note, fillcolor=honeydew];\n",
                          quoted(id("NVLinks of all")), lines);
  }

  const Host& host_;
  std::string out_;
};

}  // namespace

std::string show_dot(const Topology& topology) {
  std::string out = fmt::format(
      "graph {} {{\n  label={}; labelloc=t; fontname=\"sans-serif\"; nodesep=0.15; ranksep=0.6; "
      "ordering=out;\n",
      quoted(topology.name), quoted(topology.name));
  out +=
      "  node [shape=box, style=filled, fontname=\"sans-serif\", fontsize=11];\n  edge "
      "[fontname=\"sans-serif\", fontsize=9];\n";
  if (topology.fabric)
    out += fmt::format("  fabric [label={}, shape=ellipse, fillcolor=white];\n",
                       quoted("fabric " + topology.fabric->model));
  for (const auto& group : equal_hosts(topology)) {
    const Host& host = topology.hosts[group.front()];
    out += Drawing(host).draw(host_names(topology, group) + (group.size() > 1 ? ": the same" : ""));
    if (!topology.fabric) continue;
    for (const Device& device : host.devices)
      if (device.kind == DeviceKind::nic)
        out += fmt::format("  {} -- fabric [color=steelblue, minlen=2];\n",
                           quoted(host.name + "/" + device.name));
  }
  return out + "}\n";
}

}  // namespace gdr::report
