#include "src/report/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "src/report/names.hpp"

namespace gdr::cli {

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i])
                     : fmt::format("  {:>{}}", row[i], widths[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    text += line + "\n";
  }
  return text;
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> hardware;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    hardware.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return hardware;
}

std::string wrapped(std::string_view text, std::size_t indent, std::size_t width) {
  std::string out;
  std::size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > width) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out;
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
                      {"bottleneck", sim::name(hardware, p.bottleneck)},
                      {"cpu_cores", rounded(p.cpu_cores)},
                      {"host_memory_bytes_per_byte", rounded(p.host_memory_bytes_per_byte)},
                      {"dram_bytes_per_byte", rounded(p.dram_bytes_per_byte)},
                      {"pcie_bytes_per_byte", rounded(p.pcie_bytes_per_byte)},
                      {"open", open_to_json(hardware.graph(), p.stages)},
                      {"stages", stages_to_json(hardware.graph(), p.stages)}};
}

}  // namespace gdr::cli
