#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads the drawing of lspci -t. A line hangs below the branch that an earlier line drew in its
/// column; where grep took that line away, what hangs there has no known parent.
class LspciTree {
 public:
  /// True when the line is part of such a drawing. Functions go to `machine`.
  bool line(std::string_view text, Machine& machine);
  /// The next line begins another drawing.
  void reset() { branches_.clear(); }

 private:
  /// What a branch hangs below.
  struct Parent {
    std::optional<std::size_t> bridge;
    std::string root_bus;  ///< "0000:c0"; empty: not known
  };
  struct Branch {
    Parent parent;
    bool closed = false;  ///< its last line ("\-") was there
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
