#include "src/report/check_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "src/report/output.hpp"
#include "src/report/show_text.hpp"

namespace gdr::report {
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

/// Rows and columns are devices, cells the distance and verdict of the pair; wide matrices are cut
/// into blocks of columns.
class Matrix {
 public:
  explicit Matrix(std::string corner) : corner_(std::move(corner)) {}

  void set(const std::string& row, const std::string& column, std::string cell) {
    if (known_rows_.insert(row).second) rows_.push_back(row);
    if (known_columns_.insert(column).second) columns_.push_back(column);
    cells_[{row, column}] = std::move(cell);
  }

  [[nodiscard]] std::string text() const {
    std::vector<std::vector<std::string>> table_rows{{corner_}};
    for (const std::string& column : columns_) table_rows.front().push_back(column);
    for (const std::string& row : rows_) {
      table_rows.push_back({row});
      for (const std::string& column : columns_) {
        const auto cell = cells_.find({row, column});
        table_rows.back().push_back(cell == cells_.end() ? "" : cell->second);
      }
    }
    return table(table_rows, {false, 2, line_width}) + "\n";
  }

 private:
  std::string corner_;
  std::set<std::string> known_rows_;
  std::set<std::string> known_columns_;
  std::vector<std::string> rows_;
  std::vector<std::string> columns_;
  std::map<std::pair<std::string, std::string>, std::string> cells_;
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
  return fmt::format("NIC reads {:.1f}, writes {:.1f} GB/s", bandwidth.read->gigabytes_per_second(),
                     bandwidth.write->gigabytes_per_second());
}

std::string best_nics(const Verdict& verdict, std::size_t host) {
  std::vector<std::vector<std::string>> rows;
  for (const BestPair& best : verdict.best) {
    if (best.host != host) continue;
    const Pair& pair = verdict.pairs[best.pair];
    rows.push_back({device_name(pair.from), device_name(pair.to), pair.distance,
                    std::string(to_string(pair.answer)), bandwidth_text(pair.bandwidth)});
  }
  return rows.empty() ? "" : "  Best NIC of each GPU\n" + table(rows, {false, 4, 0}) + "\n";
}

std::string findings(const Verdict& verdict, std::size_t host) {
  std::string out;
  for (const Severity severity : {Severity::error, Severity::warning, Severity::note}) {
    std::string group;
    int count = 0;
    for (const Finding& finding : verdict.findings) {
      if (finding.host != host || finding.severity != severity) continue;
      ++count;
      group += fmt::format("    {}\n", finding.rule) + paragraph("at " + finding.where, 6) +
               paragraph(finding.message, 6) + paragraph("Remedy: " + finding.remedy, 6);
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
    out +=
        paragraph(host_names(topology, group) + (group.size() > 1 ? ": the same" : ""), 0) + "\n";
    out += matrices(verdict, group.front()) + best_nics(verdict, group.front()) +
           findings(verdict, group.front());
  }
  out += "+ works   ~ slow   x blocked   ? unknown: the file does not say what decides\n";
  out +=
      "PIX one switch, PXB several switches, PHB one host bridge, NODE one NUMA node,\nSYS between "
      "NUMA nodes, NV# NVLinks, XGMI# xGMI links\n";
  return out;
}

}  // namespace gdr::report
