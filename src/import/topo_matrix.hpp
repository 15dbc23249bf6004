#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/import/observed.hpp"

namespace gdr::observed {

/// Reads the table of `nvidia-smi topo -m` (and -mp) line by line, with its NIC legend: of any
/// driver, with escape sequences, with rows and columns cut off. A row that does not fit the header
/// is left out, with a remark; the other rows say the same.
class TopoMatrixReader {
 public:
  /// True when the line is part of a table. `text` is without escape sequences.
  bool line(std::string_view text);
  /// A machine with the table, or an empty one.
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

/// nvidia-smi's word for a distance, old ones included (SOC, PSB); nullopt for another word.
std::optional<Distance> distance_of_word(std::string_view word);

}  // namespace gdr::observed
