#pragma once

#include <vector>

#include "src/nccl/graph.hpp"

namespace gdr::nccl {

/// The way from one node to another, as far as NCCL compares ways.
struct Path {
  PathType type = PathType::dis;
  float gigabytes_per_second = 0;
  int hops = 0;
  bool operator==(const Path&) const = default;
};

/// Paths from every node to the CPUs, GPUs and nets.
class PathTable {
 public:
  /// Searches all of them in the graph as it is wired.
  PathTable(const Graph& graph, const Rules& rules);

  [[nodiscard]] const Path& get(std::size_t from, std::size_t to) const { return paths_[to][from]; }
  Path& get(std::size_t from, std::size_t to) { return paths_[to][from]; }

 private:
  void search(const Graph& graph, const Rules& rules, std::size_t to);

  std::vector<std::vector<Path>> paths_;  ///< by target, then by start
};

}  // namespace gdr::nccl
