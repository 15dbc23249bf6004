#include "src/report/compare_report.hpp"

#include <fmt/format.h>

#include <functional>

#include "src/report/html.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

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
      {"GB/s per GPU, alone", "alone", [](const Column& c) { return rate(c.alone); }},
      {"GB/s per GPU, all at once", "together", [](const Column& c) { return rate(c.together); }},
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

}  // namespace

std::string to_text(const std::vector<Column>& columns) {
  std::vector<std::vector<std::string>> cells{{""}};
  for (const Row& row : rows()) cells.push_back({row.name});
  for (const Column& column : columns) {
    cells[0].push_back(column.name.substr(0, 40));
    for (std::size_t r = 0; r < rows().size(); ++r) cells[r + 1].push_back(rows()[r].text(column));
  }
  std::string out = table(cells, {true, 0, 80});
  for (const Column& column : columns)
    if (!column.note.empty())
      out += "\n" + wrapped(fmt::format("{}: {}", column.name, column.note), 2) + "\n";
  return out +
         "\nEach GPU sends 256 MiB to its counterpart in an equal server through its best\n"
         "NIC, by GPUDirect RDMA if the verdict allows, else staged. Pairs: GPU, NIC.\n"
         "Oversubscription: bandwidth alone over bandwidth with all GPUs at once.\n";
}

json::Value to_json(const std::vector<Column>& columns) {
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

std::string to_html(const std::vector<Column>& columns) {
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Servers "
      "compared</title>\n"
      "<style>body{font-family:sans-serif}table{border-collapse:collapse}th,td{border:1px solid "
      "#999;padding:.3em .6em;text-align:right}"
      "th:first-child{text-align:left}</style>\n</head>\n<body>\n<h1>Servers "
      "compared</h1>\n<table>\n<tr><th></th>";
  for (const Column& column : columns) out += "<th>" + html_escaped(column.name) + "</th>";
  out += "</tr>\n";
  for (const Row& row : rows()) {
    out += "<tr><th>" + html_escaped(row.name) + "</th>";
    for (const Column& column : columns) out += "<td>" + html_escaped(row.text(column)) + "</td>";
    out += "</tr>\n";
  }
  out += "</table>\n";
  for (const Column& column : columns)
    if (!column.note.empty())
      out += "<p>" + html_escaped(column.name + ": " + column.note) + "</p>\n";
  return out +
         "<p>Each GPU sends 256 MiB to its counterpart in an equal server through its best NIC, by "
         "GPUDirect RDMA if the verdict allows it, else staged.</p>\n</body>\n</html>\n";
}

}  // namespace gdr::report
