#include "src/nccl/search.hpp"

#include <algorithm>

namespace gdr::nccl {
namespace {

constexpr float to_itself = 5000.0F;

PathType path_type(LinkType type) {
  switch (type) {
    case LinkType::loc:
    case LinkType::net:
      return PathType::loc;  // the last step to a net does not count
    case LinkType::nvl:
      return PathType::nvl;
    case LinkType::c2c:
      return PathType::c2c;
    case LinkType::pci:
      return PathType::pix;
    case LinkType::sys:
      return PathType::sys;
  }
  return PathType::dis;
}

/// The type of a path after adding the link from `near` to `far` to a path of type `so_far`.
PathType extend(const Path& so_far, const Node& near, const Node& far, const Link& link) {
  PathType type = path_type(link.type);
  if (near.kind == NodeKind::pci && far.kind == NodeKind::pci) type = PathType::pxb;
  if (link.type == LinkType::pci && (near.kind == NodeKind::cpu || far.kind == NodeKind::cpu))
    type = PathType::phb;
  if (near.kind == NodeKind::gpu && so_far.type == PathType::nvl && type == PathType::nvl)
    type = PathType::nvb;
  return std::max(so_far.type, type);
}

bool is_better(const Path& candidate, const Path& known, const Rules& rules) {
  if (!rules.type_before_hops)
    return (known.gigabytes_per_second == 0 || known.hops > candidate.hops - 1) &&
           known.gigabytes_per_second < candidate.gigabytes_per_second;
  if (candidate.type != known.type) return candidate.type < known.type;
  if (candidate.gigabytes_per_second != known.gigabytes_per_second)
    return candidate.gigabytes_per_second > known.gigabytes_per_second;
  return candidate.hops < known.hops;
}

/// Traffic passes through a GPU only from one NVLink to another, and only once.
bool may_pass(const Node& near, const Node& far, const Link& link, const Path& so_far) {
  return near.kind != NodeKind::gpu ||
         (link.type == LinkType::nvl && far.kind == NodeKind::gpu && so_far.hops <= 1);
}

}  // namespace

PathTable::PathTable(const Graph& graph, const Rules& rules) : paths_(graph.nodes.size()) {
  for (const auto* targets : {&graph.cpus, &graph.gpus, &graph.nets})
    for (const std::size_t to : *targets) search(graph, rules, to);
}

/// A breadth-first search from the target. It visits nodes and links in NCCL's order, since NCCL
/// keeps the first of equal paths.
void PathTable::search(const Graph& graph, const Rules& rules, std::size_t to) {
  std::vector<Path>& paths = paths_[to];
  paths.assign(graph.nodes.size(), {});
  paths[to] = {PathType::loc, to_itself, 0};
  std::vector<std::size_t> wave{to};
  std::vector<std::size_t> next;
  while (!wave.empty()) {
    next.clear();
    for (const std::size_t near : wave) {
      for (const Link& link : graph.nodes[near].links) {
        const Node& far = graph.nodes[link.to];
        if (near != to && !may_pass(graph.nodes[near], far, link, paths[near])) continue;
        const Path candidate{extend(paths[near], graph.nodes[near], far, link),
                             std::min(paths[near].gigabytes_per_second, link.gigabytes_per_second),
                             paths[near].hops + 1};
        if (!is_better(candidate, paths[link.to], rules)) continue;
        const bool reverse = std::any_of(far.links.begin(), far.links.end(), [&](const Link& l) {
          return l.to == near && l.type == link.type;
        });
        if (!reverse) continue;  // NCCL gives up on such a machine
        paths[link.to] = candidate;
        if (std::find(next.begin(), next.end(), link.to) == next.end()) next.push_back(link.to);
      }
    }
    wave.swap(next);
  }
}

}  // namespace gdr::nccl
