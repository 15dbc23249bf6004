#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads the tree of lspci -t. A line belongs to the branch that an earlier line drew in its
/// column; if grep removed that line, the parent is unknown.
class LspciTree {
 public:
  /// True when the line is part of a tree. Adds its functions to `machine`.
  bool line(std::string_view text, Machine& machine);
  /// The next line starts another tree.
  void reset() { branches_.clear(); }

 private:
  /// The parent of the functions in a column.
  struct Parent {
    std::optional<std::size_t> bridge;
    std::string root_bus;  ///< "0000:c0"; empty: unknown
  };
  struct Branch {
    Parent parent;
    bool closed = false;  ///< its last line ("\-") was read
  };
  struct Cursor {
    std::string_view text;
    std::size_t at = 0;
    Parent parent;
    std::optional<std::size_t> function;  ///< the last one on this line
  };

  Parent branch_at(std::size_t column, bool last);
  bool bus(Cursor& cursor, Machine& machine);
  static bool function(Cursor& cursor, Machine& machine);

  std::map<std::size_t, Branch> branches_;  ///< by column
};

}  // namespace gdr::observed
