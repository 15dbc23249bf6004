#include "src/report/check_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "src/report/show_text.hpp"

namespace gdr::cli {
namespace {

constexpr std::size_t line_width = 80;

char mark(PairAnswer answer) {
  switch (answer) {
    case PairAnswer::works:
      return '+';
    case PairAnswer::slow:
      return '~';
    case PairAnswer::blocked:
      return 'x';
    case PairAnswer::unknown:
      break;
  }
  return '?';
}

/// The name without its host.
std::string device_name(const std::string& label) { return label.substr(label.find('/') + 1); }

/// Words of `text` in lines that start with `indent` spaces; a word longer than a line stands
/// alone.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string out;
  std::string line;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    if (!line.empty() && indent + line.size() + 1 + word.size() > line_width) {
      out += std::string(indent, ' ') + line + "\n";
      line.clear();
    }
    if (!line.empty()) line += ' ';
    line += word;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out + std::string(indent, ' ') + line + "\n";
}

/// Rows and columns are devices, cells what stands between them; wide matrices are cut into blocks
/// of columns.
class Matrix {
 public:
  explicit Matrix(std::string corner) : corner_(std::move(corner)) {}

  void set(const std::string& row, const std::string& column, std::string cell) {
    auto& width = widths_.try_emplace(column, 0).first->second;
    if (width == 0) columns_.push_back(column);
    width = std::max({width, column.size(), cell.size()});
    const auto [at, is_new] = cells_.try_emplace(row);
    if (is_new) rows_.push_back(row);
    at->second[column] = std::move(cell);
  }

  [[nodiscard]] std::string text() const {
    std::size_t first = corner_.size();
    for (const std::string& row : rows_) first = std::max(first, row.size());
    std::string out;
    for (std::size_t from = 0; from < columns_.size();) {
      if (from > 0) out += "\n";
      std::size_t to = from;
      for (std::size_t width = 2 + first;
           to < columns_.size() && (to == from || width + 2 + width_of(columns_[to]) <= line_width);
           ++to)
        width += 2 + width_of(columns_[to]);
      out += line(corner_, first, from, to, [](const std::string& column) { return column; });
      for (const std::string& row : rows_)
        out += line(row, first, from, to, [&](const std::string& column) {
          const auto& cells = cells_.at(row);
          const auto cell = cells.find(column);
          return cell == cells.end() ? std::string() : cell->second;
        });
      from = to;
    }
    return out + "\n";
  }

 private:
  [[nodiscard]] std::size_t width_of(const std::string& column) const { return widths_.at(column); }

  template <typename Cell>
  [[nodiscard]] std::string line(const std::string& head, std::size_t first, std::size_t from,
                                 std::size_t to, Cell cell) const {
    std::string out = fmt::format("  {:<{}}", head, first);
    for (std::size_t i = from; i < to; ++i)
      out += fmt::format("  {:<{}}", cell(columns_[i]), width_of(columns_[i]));
    out.erase(out.find_last_not_of(' ') + 1);
    return out + "\n";
  }

  std::string corner_;
  std::vector<std::string> rows_;
  std::vector<std::string> columns_;
  std::map<std::string, std::map<std::string, std::string>> cells_;  // by row and column
  std::map<std::string, std::size_t> widths_;                        // of columns
};

std::string matrices(const Verdict& verdict, std::size_t host) {
  Matrix nics("GPU/NIC");
  Matrix gpus("GPU/GPU");
  Matrix drives("NVMe/GPU");
  std::set<PairKind> kinds;
  for (const Pair& pair : verdict.pairs) {
    if (pair.host != host) continue;
    kinds.insert(pair.kind);
    const std::string from = device_name(pair.from);
    const std::string to = device_name(pair.to);
    const std::string cell = fmt::format("{} {}", pair.distance, mark(pair.answer));
    if (pair.kind == PairKind::gpu_nic) nics.set(from, to, cell);
    if (pair.kind == PairKind::nvme_gpu) drives.set(from, to, cell);
    if (pair.kind != PairKind::gpu_gpu) continue;
    gpus.set(from, from, "X");
    gpus.set(from, to, cell);
    gpus.set(to, to, "X");
    gpus.set(to, from, cell);
  }
  std::string out;
  if (kinds.count(PairKind::gpu_nic) != 0) out += nics.text();
  if (kinds.count(PairKind::gpu_gpu) != 0) out += gpus.text();
  if (kinds.count(PairKind::nvme_gpu) != 0) out += drives.text();
  return out;
}

std::string bandwidth_text(const PairBandwidth& bandwidth) {
  if (!bandwidth.read || !bandwidth.write) return "";
  return fmt::format("  NIC reads {:.1f}, writes {:.1f} GB/s",
                     bandwidth.read->gigabytes_per_second(),
                     bandwidth.write->gigabytes_per_second());
}

std::string best_nics(const Verdict& verdict, std::size_t host) {
  std::vector<std::array<std::string, 5>> rows;
  for (const BestPair& best : verdict.best) {
    if (best.host != host) continue;
    const Pair& pair = verdict.pairs[best.pair];
    rows.push_back({device_name(pair.from), device_name(pair.to), pair.distance,
                    std::string(to_string(pair.answer)), bandwidth_text(pair.bandwidth)});
  }
  std::array<std::size_t, 4> widths{};
  for (const auto& row : rows)
    for (std::size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string out = rows.empty() ? "" : "  Best NIC of each GPU\n";
  for (const auto& row : rows) {
    std::string line = fmt::format("    {:<{}}  {:<{}}  {:<{}}  {:<{}}{}", row[0], widths[0],
                                   row[1], widths[1], row[2], widths[2], row[3], widths[3], row[4]);
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return rows.empty() ? out : out + "\n";
}

std::string findings(const Verdict& verdict, std::size_t host) {
  std::string out;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
    std::string group;
    int count = 0;
    for (const Finding& finding : verdict.findings) {
      if (finding.host != host || finding.severity != severity) continue;
      ++count;
      group += fmt::format("    {}\n", finding.rule) + wrapped("at " + finding.where, 6) +
               wrapped(finding.message, 6) + wrapped("Remedy: " + finding.remedy, 6);
    }
    if (count > 0)
      out += fmt::format("  {}{}\n{}\n", to_string(severity), count > 1 ? "s" : "", group);
  }
  return out;
}

}  // namespace

std::string check_text(const Topology& topology, const Verdict& verdict) {
  std::string out;
  for (const std::vector<std::size_t>& group : same_hosts(topology)) {
    out += wrapped(host_names(topology, group) + (group.size() > 1 ? ": the same" : ""), 0) + "\n";
    out += matrices(verdict, group.front()) + best_nics(verdict, group.front()) +
           findings(verdict, group.front());
  }
  out += "+ works   ~ slow   x blocked   ? unknown: the file does not say what decides\n";
  out +=
      "PIX one switch, PXB several switches, PHB one host bridge, NODE one NUMA node,\nSYS between "
      "NUMA nodes, NV# NVLinks, XGMI# xGMI links\n";
  return out;
}

}  // namespace gdr::cli
