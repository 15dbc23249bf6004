#include "src/report/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/report/names.hpp"

namespace gdr::report {

namespace {

using Rows = std::vector<std::vector<std::string>>;

std::vector<std::size_t> widths_of(const Rows& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  return widths;
}

/// A row's first cell and those from `from` up to `to`, exclusive.
std::string table_line(const std::vector<std::string>& row, const std::vector<std::size_t>& widths,
                       std::size_t from, std::size_t to, const TableStyle& style) {
  std::string line(style.indent, ' ');
  line += fmt::format("{:<{}}", row.empty() ? "" : row[0], widths.empty() ? 0 : widths[0]);
  for (std::size_t i = from; i < std::min(to, row.size()); ++i)
    line += style.numbers ? fmt::format("  {:>{}}", row[i], widths[i])
                          : fmt::format("  {:<{}}", row[i], widths[i]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

}  // namespace

std::string table(const Rows& rows, const TableStyle& style) {
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  std::size_t from = 1;
  do {
    std::size_t to = from;
    std::size_t width = style.indent + (widths.empty() ? 0 : widths[0]);
    for (; to < widths.size() &&
           (to == from || style.width == 0 || width + 2 + widths[to] <= style.width);
         ++to)
      width += 2 + widths[to];
    if (!text.empty()) text += "\n";
    for (const auto& row : rows) text += table_line(row, widths, from, to, style);
    from = to;
  } while (from < widths.size());
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    parts.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

namespace {

/// As wrapped(); the first line already has `column` characters.
std::string wrapped_from(std::string_view text, std::size_t column, std::size_t indent,
                         std::size_t width) {
  std::string out;
  bool begun = false;  // the line has a word
  for (const std::string& word : split(text, ' ')) {
    if (begun && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    begun = begun || !word.empty();
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  return wrapped_from(text, 0, indent, width);
}

std::string paragraph(std::string_view text, std::size_t indent) {
  constexpr std::size_t line_width = 80;
  return std::string(indent, ' ') + wrapped_from(text, indent, indent, line_width) + "\n";
}

std::string csv_quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string short_number(double value) {
  if (value == 0) return "0";
  const double magnitude = std::floor(std::log10(std::abs(value)));
  const int decimals = std::clamp(3 - static_cast<int>(magnitude), 0, 6);
  return fmt::format("{:.{}f}", value, std::min(decimals, value >= 10 ? 2 : decimals));
}

json::Value rounded(double value) {
  return std::strtod(fmt::format("{:.6g}", value).c_str(), nullptr);
}

json::Value stages_to_json(const Graph& graph, const std::vector<Stage>& stages) {
  json::Array list;
  for (const Stage& stage : stages)
    list.emplace_back(json::Object{{"mover", to_string(stage.mover)},
                                   {"from", graph.label(stage.from)},
                                   {"to", graph.label(stage.to)},
                                   {"bytes", stage.bytes.count}});
  return list;
}

namespace {

/// The open questions of all stages, each once.
std::vector<OpenQuestion> open_of(const std::vector<Stage>& stages) {
  std::vector<OpenQuestion> open;
  for (const Stage& stage : stages)
    for (const OpenQuestion& question : stage.open)
      if (std::find(open.begin(), open.end(), question) == open.end()) open.push_back(question);
  return open;
}

json::Value open_to_json(const Graph& graph, const std::vector<Stage>& stages) {
  json::Array list;
  for (const OpenQuestion& question : open_of(stages))
    list.emplace_back(
        json::Object{{"unknown", question.kind == OpenQuestion::Kind::acs ? "acs" : "ats"},
                     {"device", graph.label(question.device)}});
  return list;
}

}  // namespace

std::string open_to_text(const Graph& graph, const std::vector<Stage>& stages) {
  std::string text;
  for (const OpenQuestion& question : open_of(stages)) {
    const std::string device = graph.label(question.device);
    const std::string line =
        question.kind == OpenQuestion::Kind::acs
            ? fmt::format(
                  "not known: the ACS bits of the port above {}; the direct route is taken "
                  "(\"acs\" in the file says)",
                  device)
            : fmt::format(
                  "not known: whether {} has ATS switched on; the route over the root port "
                  "is taken (\"ats\" in the file says)",
                  device);
    text += "  " + wrapped(line, 4, 78) + "\n";
  }
  return text;
}

json::Value prediction_to_json(const Hardware& hardware, const sim::Prediction& p) {
  return json::Object{{"path", to_string(p.transfer.path)},
                      {"operation", to_string(p.transfer.operation)},
                      {"size_bytes", p.transfer.size.count},
                      {"latency_us", rounded(p.latency.us())},
                      {"completion_us", rounded(p.completion.us())},
                      {"bandwidth_GBps", rounded(p.bandwidth.gigabytes_per_second())},
                      {"bottleneck", report::name(hardware, p.bottleneck)},
                      {"cpu_cores", rounded(p.cpu_cores)},
                      {"host_memory_bytes_per_byte", rounded(p.host_memory_bytes_per_byte)},
                      {"dram_bytes_per_byte", rounded(p.dram_bytes_per_byte)},
                      {"pcie_bytes_per_byte", rounded(p.pcie_bytes_per_byte)},
                      {"open", open_to_json(hardware.graph(), p.stages)},
                      {"stages", stages_to_json(hardware.graph(), p.stages)}};
}

}  // namespace gdr::report
