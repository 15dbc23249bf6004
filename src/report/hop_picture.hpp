#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/units.hpp"
#include "src/report/tree_layout.hpp"

namespace gdr::report {

/// An arrow of the picture: the links from one box to another in this direction.
struct HopArrow {
  std::string from;  ///< names of boxes
  std::string to;
  std::set<std::size_t> steps;         ///< of the path that take this arrow, from 1
  std::optional<Bandwidth> bandwidth;  ///< the least of the links in it; nullopt: none is stated
  bool limits = false;                 ///< one of them limits the path
};

/// The arrows of a path, in the order in which its steps need them. Ends of hops that have no box
/// (a bridge that only the graph has) are skipped.
std::vector<HopArrow> arrows_of(const sim::Explanation& path, const TreeLayout& layout);

/// Boxes of the path's limit where it is not an arrow: an engine, a BAR, a window.
std::set<std::string> limiting_boxes(const sim::Explanation& path, const TreeLayout& layout,
                                     const std::vector<HopArrow>& arrows);

/// The trees with the arrows drawn in, as an svg element.
std::string tree_svg(const TreeLayout& layout, const std::vector<HopArrow>& arrows,
                     const std::set<std::string>& limiting);

}  // namespace gdr::report
