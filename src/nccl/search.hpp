#pragma once

#include <vector>

#include "src/nccl/graph.hpp"

namespace gdr::nccl {

/// The properties by which NCCL compares paths between two nodes.
struct Path {
  PathType type = PathType::dis;
  float gigabytes_per_second = 0;
  int hops = 0;
  bool operator==(const Path&) const = default;
};

/// Paths from every node to the CPUs, GPUs and nets.
class PathTable {
 public:
  /// Finds all paths in the graph as wired.
  PathTable(const Graph& graph, const Rules& rules);

  [[nodiscard]] const Path& get(std::size_t from, std::size_t to) const { return paths_[to][from]; }
  Path& get(std::size_t from, std::size_t to) { return paths_[to][from]; }

 private:
  void search(const Graph& graph, const Rules& rules, std::size_t to);

  std::vector<std::vector<Path>> paths_;  ///< by target, then by start
};

}  // namespace gdr::nccl
