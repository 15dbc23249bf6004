#include "src/report/tree_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::report {
namespace {

constexpr double column = 96;
constexpr double row = 68;
constexpr double margin = 56;

/// Places the boxes of one host, from `left` on; returns the x behind it.
class HostLayout {
 public:
  HostLayout(const Host& host, const std::set<std::string>& shown, TreeLayout& layout)
      : host_(host), shown_(shown), layout_(layout) {}

  double place(double left) {
    next_ = left;
    const std::size_t first_socket = layout_.boxes.size();
    for (const Socket& socket : host_.sockets) place_socket(socket);
    // Sockets stand in a row, each joined to the next.
    std::string before;
    for (std::size_t i = first_socket; i < layout_.boxes.size(); ++i) {
      if (layout_.boxes[i].kind != "cpu") continue;
      if (!before.empty()) layout_.boxes[i].joined.push_back(before);
      before = layout_.boxes[i].name;
    }
    return next_;
  }

 private:
  std::string name_of(const std::string& part) const { return host_.name + "/" + part; }

  void place_socket(const Socket& socket) {
    const double left = next_;
    std::vector<std::string> nodes;
    for (const NumaNode& node : host_.numa_nodes)
      if (node.socket == socket.name) nodes.push_back(node.name);
    double sum = 0;
    int count = 0;
    std::size_t others = 0;
    for (const std::string& node : nodes)
      place_below(node, 1, name_of(socket.name), sum, count, others);
    place_others(others, 1, name_of(socket.name), sum, count);
    if (count == 0) next_ += column;
    const double middle = count > 0 ? sum / count : left + column / 2;
    layout_.boxes.push_back({name_of(socket.name),
                             socket.name,
                             socket.name + " " + socket.model,
                             "cpu",
                             middle,
                             margin,
                             {}});
    double x = middle;
    for (const std::string& node : nodes) {
      if (!shown_.contains(name_of(node))) continue;
      x += memory_column;
      layout_.boxes.push_back({name_of(node),
                               node,
                               node + ", host memory",
                               "memory",
                               x,
                               margin,
                               {name_of(socket.name)}});
    }
    next_ = std::max(next_, x + column / 2);
  }

  std::size_t devices_in(const Device& device) const {
    std::size_t count = 1;
    for (const Device& below : host_.devices)
      if (below.under == device.name) count += devices_in(below);
    return count;
  }

  bool is_shown(const Device& device) const {
    return shown_.contains(name_of(device.name)) ||
           std::any_of(host_.devices.begin(), host_.devices.end(), [&](const Device& below) {
             return below.under == device.name && is_shown(below);
           });
  }

  /// Places the shown devices directly below `above_name`; the others are counted.
  void place_below(const std::string& above_name, int depth, const std::string& above, double& sum,
                   int& count, std::size_t& others) {
    for (const Device& device : host_.devices) {
      if (device.under != above_name) continue;
      if (!is_shown(device)) {
        others += devices_in(device);
        continue;
      }
      sum += place_device(device, depth, above);
      ++count;
    }
  }

  void place_others(std::size_t others, int depth, const std::string& above, double& sum,
                    int& count) {
    if (others == 0) return;
    const double x = next_ + column / 2;
    next_ += column;
    layout_.boxes.push_back({above + " others",
                             fmt::format("+{}", others),
                             fmt::format("{} devices without a part in this", others),
                             "others",
                             x,
                             margin + depth * row,
                             {above}});
    sum += x;
    ++count;
  }

  /// Returns its x: the middle of what hangs below it.
  double place_device(const Device& device, int depth, const std::string& above) {
    double sum = 0;
    int count = 0;
    std::size_t others = 0;
    place_below(device.name, depth + 1, name_of(device.name), sum, count, others);
    place_others(others, depth + 1, name_of(device.name), sum, count);
    double x = 0;
    if (count > 0) {
      x = sum / count;
    } else {
      x = next_ + column / 2;
      next_ += column;
    }
    std::string title = device.name + (device.model.empty() ? "" : " " + device.model);
    layout_.boxes.push_back({name_of(device.name),
                             device.name,
                             std::move(title),
                             std::string(to_string(device.kind)),
                             x,
                             margin + depth * row,
                             {above}});
    layout_.height = std::max(layout_.height, margin * 2 + depth * row);
    return x;
  }

  const Host& host_;
  const std::set<std::string>& shown_;
  TreeLayout& layout_;
  double next_ = 0;
};

}  // namespace

const TreeLayout::Box* TreeLayout::find(const std::string& name) const {
  const auto found =
      std::find_if(boxes.begin(), boxes.end(), [&](const Box& box) { return box.name == name; });
  return found == boxes.end() ? nullptr : &*found;
}

TreeLayout lay_out(const Graph& graph, const Transfer& transfer,
                   const std::set<std::string>& shown) {
  TreeLayout layout;
  const Topology& topology = graph.topology();
  // Numbers stand beside the outermost lines.
  constexpr double room = 76;
  double x = room;
  const bool two = transfer.from.host != transfer.to.host;
  x = HostLayout(topology.hosts.at(transfer.from.host), shown, layout).place(x);
  if (two) x = HostLayout(topology.hosts.at(transfer.to.host), shown, layout).place(x + column);
  layout.width = x + room;
  if (two) {
    TreeLayout::Box fabric{"fabric",           "network", "the network", "fabric", layout.width / 2,
                           layout.height + 10, {}};
    for (const TreeLayout::Box& box : layout.boxes)
      if (box.kind == "nic") fabric.joined.push_back(box.name);
    layout.boxes.push_back(std::move(fabric));
    layout.height += margin + 10;
  }
  return layout;
}

}  // namespace gdr::report
