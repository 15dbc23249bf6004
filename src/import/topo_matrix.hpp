#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads the table of `nvidia-smi topo -m` (and -mp) line by line, with its NIC legend. The table
/// may be from any driver, have escape sequences, and lack rows and columns. A row that does not
/// fit the header is ignored with a remark, since the other rows have the same entries.
class TopoMatrixReader {
 public:
  /// True when the line is part of a table. `text` must not have escape sequences.
  bool line(std::string_view text);
  /// Returns a machine with the table, or an empty machine.
  Machine take();

 private:
  bool header(std::string_view text);
  bool row(std::string_view text);
  bool legend(std::string_view text);

  Matrix matrix_;
  std::vector<Remark> remarks_;
  std::map<std::string, std::string> legend_;
  bool has_numa_ = false;
  bool in_table_ = false;
};

/// The distance that nvidia-smi calls `word`, including old words (SOC, PSB); nullopt for any
/// other.
std::optional<Distance> distance_of_word(std::string_view word);

}  // namespace gdr::observed
