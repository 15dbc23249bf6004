#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/units.hpp"
#include "src/report/tree_layout.hpp"

namespace gdr::cli {

/// An arrow of the picture: what leads from one box to another in this direction.
struct HopArrow {
  std::string from;  ///< names of boxes
  std::string to;
  std::set<std::size_t> steps;         ///< of the path that go this way, from 1
  std::optional<Bandwidth> bandwidth;  ///< the least of the links in it; nullopt: none is stated
  bool limits = false;                 ///< what the path is limited by is one of them
};

/// The arrows of a path, in the order in which its steps need them. Ends of hops without a box (a
/// bridge that only the graph has) are skipped.
std::vector<HopArrow> arrows_of(const sim::Explanation& path, const TreeLayout& layout);

/// Boxes that the path's limit is at, where it is none of the arrows: an engine, a BAR, a window.
std::set<std::string> limiting_boxes(const sim::Explanation& path, const TreeLayout& layout,
                                     const std::vector<HopArrow>& arrows);

/// The trees with the arrows drawn in, as an svg element.
std::string tree_svg(const TreeLayout& layout, const std::vector<HopArrow>& arrows,
                     const std::set<std::string>& limiting);

}  // namespace gdr::cli
