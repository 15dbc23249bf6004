#include "src/import/topo_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/common/terminal_text.hpp"

namespace gdr::observed {
namespace {

bool is_numbered(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix) || word.size() == prefix.size() || word.size() > prefix.size() + 4)
    return false;
  word.remove_prefix(prefix.size());
  return std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "GPU0", "NIC0", or an RDMA device's own name: "mlx5_0", "bnxt_re0", "efa_0", "irdma0".
bool is_column(std::string_view word) {
  if (is_numbered(word, "GPU") || is_numbered(word, "NIC")) return true;
  const auto digits = word.find_first_of("0123456789");
  if (digits == std::string_view::npos || digits < 2 || word.size() > 32) return false;
  for (const std::string_view prefix : {"mlx4_", "mlx5_", "mlx5_bond_", "bnxt_re", "efa_", "rdmap",
                                        "irdma", "roce", "ibp", "hfi1_", "qib", "rxe"})
    if (word.starts_with(prefix)) return true;
  return false;
}

bool is_cell(std::string_view word) {
  return word == "X" || distance_of_word(word).has_value() || is_numbered(word, "NV");
}

constexpr std::size_t most_columns = 256;

}  // namespace

std::optional<Distance> distance_of_word(std::string_view word) {
  if (word == "PIX") return Distance::pix;
  if (word == "PXB" || word == "PSB") return Distance::pxb;
  if (word == "PHB") return Distance::phb;
  if (word == "NODE") return Distance::node;
  if (word == "SYS" || word == "SOC") return Distance::sys;
  return std::nullopt;
}

bool TopoMatrixReader::line(std::string_view text) {
  if (text::trim(text).empty()) return false;
  return header(text) || row(text) || legend(text);
}

bool TopoMatrixReader::header(std::string_view text) {
  if (!matrix_.names.empty()) return false;
  std::vector<std::string> names;
  for (const std::string_view word : text::split_words(text)) {
    if (!is_column(word)) break;
    names.emplace_back(word);
  }
  const bool wide = text.find("Affinity") != std::string_view::npos;
  if (names.empty() || names.size() > most_columns || (!wide && names.size() < 2)) return false;
  if (!names.front().starts_with("GPU")) return false;
  std::vector<std::string> sorted = names;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) return false;
  matrix_.names = names;
  matrix_.rdma.resize(names.size());
  matrix_.numa.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!is_numbered(names[i], "GPU") && !is_numbered(names[i], "NIC")) matrix_.rdma[i] = names[i];
  has_numa_ = text.find("NUMA Affinity") != std::string_view::npos;
  in_table_ = true;
  return true;
}

bool TopoMatrixReader::row(std::string_view text) {
  if (!in_table_) return false;
  const auto words = text::split_words(text);
  const auto name = std::find(matrix_.names.begin(), matrix_.names.end(), words.front());
  if (name == matrix_.names.end() || words.size() < 2 || !is_cell(words[1])) return false;
  const auto index = static_cast<std::size_t>(name - matrix_.names.begin());
  std::vector<std::string> cells;
  std::size_t at = 1;
  for (; at < words.size() && is_cell(words[at]); ++at) cells.emplace_back(words[at]);
  const bool own = index >= cells.size() || cells[index] == "X";
  const bool once = std::count(cells.begin(), cells.end(), "X") == (index < cells.size() ? 1 : 0);
  if (cells.size() > matrix_.names.size() || !own || !once) {
    remarks_.push_back(
        {"matrix-row-malformed", Severity::note, "host",
         fmt::format(
             "The row of {} has {} cells, the table has {} columns, and X is not in the row's own "
             "column: the row is ignored, since the other rows have the same entries.",
             *name, cells.size(), matrix_.names.size()),
         "Copy the table again if a pair is missing."});
  } else {
    for (std::size_t column = 0; column < cells.size(); ++column)
      if (column != index) matrix_.cells[{index, column}] = cells[column];
  }
  if (has_numa_ && at + 1 < words.size() && name->starts_with("GPU"))
    matrix_.numa[index] = text::printable(words[at + 1], 40);
  return true;
}

bool TopoMatrixReader::legend(std::string_view text) {
  if (matrix_.names.empty()) return false;
  const auto words = text::split_words(text);
  if (words.front() == "Legend:" || (words.size() > 1 && words[1] == "Legend:")) {
    in_table_ = false;
    return true;
  }
  if (words.size() >= 2 && words[1] == "=") return true;
  if (words.size() != 2 || !words[0].ends_with(':') ||
      !is_numbered(words[0].substr(0, words[0].size() - 1), "NIC"))
    return false;
  legend_[std::string(words[0].substr(0, words[0].size() - 1))] = text::printable(words[1], 40);
  return true;
}

Machine TopoMatrixReader::take() {
  Machine machine;
  if (!matrix_.names.empty()) {
    for (std::size_t i = 0; i < matrix_.names.size(); ++i)
      if (const auto found = legend_.find(matrix_.names[i]); found != legend_.end())
        matrix_.rdma[i] = found->second;
    machine.matrix = matrix_;
    machine.remarks = remarks_;
    machine.formats = {"nvidia-smi topo -m"};
  }
  *this = TopoMatrixReader();
  return machine;
}

}  // namespace gdr::observed
