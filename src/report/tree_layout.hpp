#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/datapath/data_path.hpp"
#include "src/hardware/graph.hpp"

namespace gdr::report {

/// The distance from a socket to the memory beside it, with room for an arrow and its number.
inline constexpr double memory_column = 136;

/// The hosts of a transfer as boxes: sockets with their memory at the top, devices below, the
/// network at the bottom.
struct TreeLayout {
  struct Box {
    std::string name;   ///< as the graph labels it: "h0/gpu0"
    std::string label;  ///< "gpu0"
    std::string title;  ///< with the model
    std::string kind;   ///< a word for its style: "cpu", "memory", "gpu"...
    double x = 0;       ///< of its middle
    double y = 0;
    std::vector<std::string> joined;  ///< boxes above or beside it that a line leads to
  };
  std::vector<Box> boxes;
  double width = 0;
  double height = 0;

  [[nodiscard]] const Box* find(const std::string& name) const;
};

/// Boxes of the devices and NUMA nodes in `shown` (labels) and of what is above them; the others
/// are counted in one box per place.
TreeLayout lay_out(const Graph& graph, const Transfer& transfer,
                   const std::set<std::string>& shown);

}  // namespace gdr::report
