#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/report/output.hpp"
#include "src/study/servers.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::vector<std::string> topologies;
  std::vector<std::string> settings;
  std::string format = "text";
};

using study::Column;

struct Row {
  std::string name;
  std::string key;  ///< in JSON
  std::function<std::string(const Column&)> text;
};

std::string rate(const std::optional<Bandwidth>& bandwidth) {
  return bandwidth ? fmt::format("{:.1f}", bandwidth->gigabytes_per_second()) : "-";
}

const std::vector<Row>& rows() {
  static const std::vector<Row> all{
      {"GPUs", "gpus", [](const Column& c) { return std::to_string(c.gpus); }},
      {"NICs with RDMA", "nics", [](const Column& c) { return std::to_string(c.nics); }},
      {"pairs that work", "works", [](const Column& c) { return std::to_string(c.pairs.works); }},
      {"pairs that are slow", "slow", [](const Column& c) { return std::to_string(c.pairs.slow); }},
      {"pairs that are blocked", "blocked",
       [](const Column& c) { return std::to_string(c.pairs.blocked); }},
      {"pairs not known", "unknown",
       [](const Column& c) { return std::to_string(c.pairs.unknown); }},
      {"GPUs without staging", "direct", [](const Column& c) { return std::to_string(c.direct); }},
      {"GB/s a GPU, alone", "alone", [](const Column& c) { return rate(c.alone); }},
      {"GB/s a GPU, all at once", "together", [](const Column& c) { return rate(c.together); }},
      {"GB/s of the worst GPU", "least", [](const Column& c) { return rate(c.least); }},
      {"worst GPU", "worst", [](const Column& c) { return c.worst.empty() ? "-" : c.worst; }},
      {"oversubscription", "oversubscription",
       [](const Column& c) {
         return c.oversubscription ? fmt::format("{:.2f}", *c.oversubscription) : "-";
       }},
      {"latency of 8 B, us", "latency",
       [](const Column& c) { return c.latency ? fmt::format("{:.2f}", c.latency->us()) : "-"; }},
      {"host memory, GB/s", "host_memory", [](const Column& c) { return rate(c.host_memory); }}};
  return all;
}

/// As many columns side by side as fit 80 characters.
std::string text_of(const std::vector<Column>& columns) {
  constexpr std::size_t line = 80;
  std::string out;
  std::size_t head = 0;
  for (const Row& row : rows()) head = std::max(head, row.name.size());
  for (std::size_t from = 0; from < columns.size();) {
    std::vector<std::vector<std::string>> cells{{""}};
    for (const Row& row : rows()) cells.push_back({row.name});
    std::size_t width = head;
    std::size_t to = from;
    for (; to < columns.size(); ++to) {
      const std::string name = columns[to].name.substr(0, 40);
      std::size_t widest = name.size();
      for (const Row& row : rows()) widest = std::max(widest, row.text(columns[to]).size());
      if (to > from && width + 2 + widest > line) break;
      width += 2 + widest;
      cells[0].push_back(name);
      for (std::size_t r = 0; r < rows().size(); ++r)
        cells[r + 1].push_back(rows()[r].text(columns[to]));
    }
    out += (out.empty() ? "" : "\n") + table(cells);
    from = to;
  }
  for (const Column& column : columns)
    if (!column.note.empty())
      out += "\n" + wrapped(fmt::format("{}: {}", column.name, column.note), 2) + "\n";
  return out +
         "\nEach GPU sends 256 MiB to its counterpart in an equal server through its best\n"
         "NIC, by GPUDirect RDMA where the verdict lets it, else staged. Pairs: GPU, NIC.\n"
         "Oversubscription: bandwidth alone over bandwidth with all GPUs at once.\n";
}

json::Value json_of(const std::vector<Column>& columns) {
  json::Array list;
  for (const Column& c : columns) {
    json::Value item = json::Object{{"name", c.name},
                                    {"gpus", json::Value(std::uint64_t{c.gpus})},
                                    {"nics", json::Value(std::uint64_t{c.nics})}};
    item.set("pairs", json::Object{{"works", json::Value(std::uint64_t{c.pairs.works})},
                                   {"slow", json::Value(std::uint64_t{c.pairs.slow})},
                                   {"blocked", json::Value(std::uint64_t{c.pairs.blocked})},
                                   {"unknown", json::Value(std::uint64_t{c.pairs.unknown})}});
    item.set("direct_gpus", json::Value(std::uint64_t{c.direct}));
    const auto put = [&](std::string_view name, const std::optional<Bandwidth>& b) {
      if (b) item.set(name, rounded(b->bytes_per_second));
    };
    put("alone_bytes_per_second", c.alone);
    put("together_bytes_per_second", c.together);
    put("worst_bytes_per_second", c.least);
    if (!c.worst.empty()) item.set("worst", c.worst);
    if (c.oversubscription) item.set("oversubscription", rounded(*c.oversubscription));
    if (c.latency) item.set("latency_seconds", rounded(c.latency->seconds));
    put("host_memory_bytes_per_second", c.host_memory);
    if (!c.note.empty()) item.set("note", c.note);
    list.push_back(std::move(item));
  }
  return json::Object{{"format", 1}, {"servers", std::move(list)}};
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<') out += "&lt;";
    else if (c == '>') out += "&gt;";
    else if (c == '&') out += "&amp;";
    else if (c == '"') out += "&quot;";
    else out += c;
  }
  return out;
}

std::string html_of(const std::vector<Column>& columns) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Servers "
      "compared</title>\n"
      "<style>body{font-family:sans-serif}table{border-collapse:collapse}th,td{border:1px solid "
      "#999;padding:.3em .6em;text-align:right}"
      "th:first-child{text-align:left}</style>\n</head>\n<body>\n<h1>Servers "
      "compared</h1>\n<table>\n<tr><th></th>";
  for (const Column& column : columns) out += "<th>" + escaped(column.name) + "</th>";
  out += "</tr>\n";
  for (const Row& row : rows()) {
    out += "<tr><th>" + escaped(row.name) + "</th>";
    for (const Column& column : columns) out += "<td>" + escaped(row.text(column)) + "</td>";
    out += "</tr>\n";
  }
  out += "</table>\n";
  for (const Column& column : columns)
    if (!column.note.empty()) out += "<p>" + escaped(column.name + ": " + column.note) + "</p>\n";
  return out +
         "<p>Each GPU sends 256 MiB to its counterpart in an equal server through its best NIC, by "
         "GPUDirect RDMA where the verdict lets it, else staged.</p>\n</body>\n</html>\n";
}

void run(const Options& options, const ModelLibrary& models) {
  const auto settings = parse_settings(options.settings);
  sim::Simulator simulator;
  std::vector<Column> columns;
  for (const std::string& path : options.topologies)
    columns.push_back(study::column_of(simulator, load_input(path, settings, &models), models));
  write_file("-", options.format == "json"   ? json::dump(json_of(columns))
                  : options.format == "html" ? html_of(columns)
                                             : text_of(columns));
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "Put servers side by side: pairs by verdict, bandwidth with all GPUs at once, latency");
  auto options = std::make_shared<Options>();
  command
      ->add_option("topologies", options->topologies,
                   "topology files or listings, one for each server")
      ->required();
  command->add_option("--set", options->settings, "KEY=VALUE: edit each topology first")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr compare topologies/servers/dgx-a100.json topologies/servers/dgx-h100.json");
  command->callback([options, &context] { run(*options, *context.models); });
}

}  // namespace gdr::cli
