#include "src/report/agreement_output.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/output.hpp"

namespace gdr::report {
namespace {

using agreement::Row;
using agreement::Witness;

constexpr std::size_t width = 80;

std::string place(const Row& row) {
  return row.to.empty() ? row.from : fmt::format("{} > {}", row.from, row.to);
}
std::string name(const Row& row) { return fmt::format("{} {}", row.mover, place(row)); }

/// Groups witnesses that saw the same, in order of the first of each group.
std::vector<std::pair<Bytes, std::vector<std::string>>> by_value(
    const std::vector<Witness>& witnesses) {
  std::vector<std::pair<Bytes, std::vector<std::string>>> groups;
  for (const Witness& witness : witnesses) {
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& known) { return known.first == witness.bytes; });
    if (group == groups.end()) group = groups.insert(groups.end(), {witness.bytes, {}});
    group->second.push_back(witness.by);
  }
  return groups;
}

/// Lines of a table whose last column is wrapped at spaces.
class Lines {
 public:
  Lines() { add({"stage", "", "planned", "observed", "equal"}, {"seen by"}); }

  void add(std::vector<std::string> cells, std::vector<std::string> words) {
    lines_.push_back({std::move(cells), std::move(words)});
  }

  void add(const Row& row) {
    const auto groups = by_value(row.observed);
    if (groups.empty())
      return add({row.mover, place(row), std::to_string(row.planned.count), "-", "NO"},
                 {"not", "observed"});
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto& [bytes, names] = groups[i];
      std::vector<std::string> words;
      for (const std::string& by : names) words.push_back(by + (&by == &names.back() ? "" : ","));
      const std::string equal = bytes == row.planned ? "yes" : "NO";
      add({i == 0 ? row.mover : "", i == 0 ? place(row) : "",
           i == 0 ? std::to_string(row.planned.count) : "", std::to_string(bytes.count), equal},
          words);
    }
  }

  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths(lines_.front().cells.size());
    for (const Line& line : lines_)
      for (std::size_t i = 0; i < widths.size(); ++i)
        widths[i] = std::max(widths[i], line.cells[i].size());
    std::string text;
    for (const Line& line : lines_) {
      std::string left = " ";
      for (std::size_t i = 0; i < widths.size(); ++i)
        left += i < 2 ? fmt::format(" {:<{}}", line.cells[i], widths[i])
                      : fmt::format("  {:>{}}", line.cells[i], widths[i]);
      text += left + " ";
      std::size_t column = left.size() + 1;
      for (const std::string& word : line.words) {
        if (column + 1 + word.size() > width && column > left.size() + 1) {
          text += "\n" + std::string(left.size() + 1, ' ');
          column = left.size() + 1;
        }
        text += " " + word;
        column += 1 + word.size();
      }
      text += "\n";
    }
    return text;
  }

 private:
  struct Line {
    std::vector<std::string> cells;
    std::vector<std::string> words;
  };
  std::vector<Line> lines_;
};

/// Read again by the NICs of both hosts, for packets that were built before.
Bytes read_again(const ComparedPath& path) {
  return path.observed.from.module.read_again + path.observed.to.module.read_again;
}

std::string path_text(const Graph& graph, const ComparedPath& path) {
  const Topology& topology = graph.topology();
  const Transfer& transfer = path.plan.transfer;
  std::string text =
      fmt::format("\n{}, by {} and {}\n", to_string(transfer.path),
                  label(topology, *path.plan.from_nic), label(topology, *path.plan.to_nic));
  if (!path.failure.empty())
    return text + "  " + wrapped("nothing to compare: " + path.failure, 2, width - 2) + "\n";
  Lines lines;
  for (const Row& row : path.audit.stages) lines.add(row);
  for (const Row& row : path.audit.host_memory) lines.add(row);
  for (const Row& row : path.audit.beside)
    if (!row.equal()) lines.add(row);
  const bool rest = std::any_of(path.audit.beside.begin(), path.audit.beside.end(),
                                [](const Row& row) { return row.equal(); });
  if (rest) lines.add({"any", "everything else", "0", "0", "yes"}, {"all"});
  const agreement::WireBytes wire = path.observed.from.sent + path.observed.to.sent;
  return text + lines.text() +
         fmt::format("  control beside it: {} in RDMA sends, {} in TCP\n", to_string(wire.sent),
                     to_string(wire.stream_control)) +
         fmt::format("  again, beside it: {} sent, {} read by NICs\n", to_string(wire.again()),
                     to_string(read_again(path)));
}

/// "staged: copy-engine h0/gpu0 > h0/numa0"
std::vector<std::string> unequal(const std::vector<ComparedPath>& paths) {
  std::vector<std::string> names;
  for (const ComparedPath& path : paths) {
    const std::string_view word = to_string(path.plan.transfer.path);
    if (!path.failure.empty()) names.push_back(fmt::format("{}: {}", word, path.failure));
    else
      for (const auto* rows : {&path.audit.stages, &path.audit.beside, &path.audit.host_memory})
        for (const Row& row : *rows)
          if (!row.equal()) names.push_back(fmt::format("{}: {}", word, name(row)));
  }
  return names;
}

json::Value rows_to_json(const std::vector<Row>& rows) {
  json::Array list;
  for (const Row& row : rows) {
    json::Array observed;
    for (const Witness& witness : row.observed)
      observed.emplace_back(json::Object{{"by", witness.by}, {"bytes", witness.bytes.count}});
    json::Object object{{"mover", row.mover},
                        {"from", row.from},
                        {"to", row.to},
                        {"planned_bytes", row.planned.count},
                        {"observed", std::move(observed)},
                        {"equal", row.equal()}};
    json::Array hops;
    for (const auto& [from, to] : row.hops)
      hops.emplace_back(json::Object{{"from", from}, {"to", to}, {"observed", false}});
    if (!hops.empty()) object.emplace_back("hops", std::move(hops));
    list.emplace_back(std::move(object));
  }
  return list;
}

json::Value path_to_json(const Graph& graph, const ComparedPath& path) {
  const Topology& topology = graph.topology();
  json::Value value(json::Object{{"path", to_string(path.plan.transfer.path)},
                                 {"via", json::Array{label(topology, *path.plan.from_nic),
                                                     label(topology, *path.plan.to_nic)}},
                                 {"equal", path.equal()}});
  if (!path.failure.empty()) {
    value.set("failure", path.failure);
    return value;
  }
  const agreement::WireBytes wire = path.observed.from.sent + path.observed.to.sent;
  value.set("stages", rows_to_json(path.audit.stages));
  value.set("host_memory", rows_to_json(path.audit.host_memory));
  value.set("beside", rows_to_json(path.audit.beside));
  value.set("control_bytes",
            json::Object{{"sends", wire.sent.count}, {"tcp", wire.stream_control.count}});
  value.set("repeated_bytes", wire.again().count);
  value.set("read_again_bytes", read_again(path).count);
  return value;
}

}  // namespace

std::string compared_to_text(const Graph& graph, const std::vector<ComparedPath>& paths,
                             const std::vector<SkippedPath>& skipped) {
  const Transfer& transfer = paths.front().plan.transfer;
  std::string text = fmt::format(
      "{}: {} of {} from {} to {}\nBytes of the plan, and of guests that really moved them\n",
      graph.topology().name, to_string(transfer.operation), to_string(transfer.size),
      label(graph.topology(), transfer.from), label(graph.topology(), transfer.to));
  for (const ComparedPath& path : paths) text += path_text(graph, path);
  for (const SkippedPath& skip : skipped)
    text += "\n" + wrapped(fmt::format("{}: not possible: {}", skip.path, skip.reason), 2) + "\n";
  text += "\nHops inside hosts are not observed: each carried what its stage's mover moved.\n";
  const auto names = unequal(paths);
  if (names.empty()) return text + "All bytes are equal.\n";
  text += "NOT equal:\n";
  for (const std::string& one : names) text += "  " + wrapped(one, 4, width - 2) + "\n";
  return text;
}

json::Value compared_to_json(const Graph& graph, const std::vector<ComparedPath>& paths,
                             const std::vector<SkippedPath>& skipped) {
  const Transfer& transfer = paths.front().plan.transfer;
  json::Array list;
  for (const ComparedPath& path : paths) list.push_back(path_to_json(graph, path));
  json::Value document(json::Object{
      {"format", 1},
      {"topology", graph.topology().name},
      {"from", label(graph.topology(), transfer.from)},
      {"to", label(graph.topology(), transfer.to)},
      {"operation", to_string(transfer.operation)},
      {"size_bytes", transfer.size.count},
      {"equal",
       std::all_of(paths.begin(), paths.end(), [](const auto& path) { return path.equal(); })},
      {"paths", std::move(list)}});
  json::Array without;
  for (const SkippedPath& skip : skipped)
    without.emplace_back(json::Object{{"path", skip.path}, {"reason", skip.reason}});
  if (!without.empty()) document.set("skipped", std::move(without));
  return document;
}

}  // namespace gdr::report
