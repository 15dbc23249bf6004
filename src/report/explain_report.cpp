#include "src/report/explain_report.hpp"

#include <fmt/format.h>

#include <cmath>

#include "src/report/names.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

/// "1.05 MB": bytes on a link, in decimal units as rates are.
std::string short_bytes(double bytes) {
  static constexpr const char* names[] = {"B", "kB", "MB", "GB"};
  std::size_t unit = 0;
  while (bytes >= 1000 && unit < 3) {
    bytes /= 1000;
    ++unit;
  }
  return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", bytes) : short_number(bytes),
                     names[unit]);
}

/// The paths side by side, one column each.
std::string comparison(const std::vector<sim::Explanation>& paths) {
  std::vector<std::vector<std::string>> rows{{""},
                                             {"latency us"},
                                             {"done us"},
                                             {"GB/s, steady"},
                                             {"steps"},
                                             {"host memory passes"},
                                             {"DRAM bytes per byte"},
                                             {"PCIe bytes per byte"},
                                             {"cores at that rate"}};
  for (const sim::Explanation& path : paths) {
    const sim::Prediction& p = path.prediction;
    const std::string cells[] = {std::string(to_string(p.transfer.path)),
                                 short_number(p.latency.us()),
                                 short_number(p.completion.us()),
                                 short_number(p.bandwidth.gigabytes_per_second()),
                                 fmt::format("{}", path.stages.size()),
                                 fmt::format("{:g}", p.host_memory_bytes_per_byte),
                                 fmt::format("{:g}", p.dram_bytes_per_byte),
                                 fmt::format("{:.2f}", p.pcie_bytes_per_byte),
                                 fmt::format("{:.2f}", p.cpu_cores)};
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(cells[i]);
  }
  return table(rows);
}

/// "limited by h0/numa3 memory, 40.96 GB/s, which steps 2 and 3 use"
std::string limit_text(const Hardware& hardware, const sim::Explanation& path) {
  std::string text = "limited by " + name(hardware, path.prediction.bottleneck);
  if (!path.bottleneck_rate || path.bottleneck_stages.size() < 2) return text;
  std::string steps;
  for (std::size_t i = 0; i < path.bottleneck_stages.size(); ++i)
    steps += fmt::format("{}{}",
                         i == 0                                   ? ""
                         : i + 1 == path.bottleneck_stages.size() ? " and "
                                                                  : ", ",
                         path.bottleneck_stages[i] + 1);
  return text + fmt::format(", {} GB/s, which steps {} share",
                            short_number(path.bottleneck_rate->gigabytes_per_second()), steps);
}

std::string stages_text(const Hardware& hardware, const sim::Explanation& path) {
  std::string text = "\n" +
                     wrapped(fmt::format("{}: {}", to_string(path.prediction.transfer.path),
                                         limit_text(hardware, path)),
                             2) +
                     "\n" + open_to_text(hardware.graph(), path.prediction.stages);
  int number = 0;
  for (const sim::StageReport& stage : path.stages) {
    text +=
        fmt::format("{:>3}. {:>9} to {:>9} us  {}", ++number, short_number(stage.times.begin.us()),
                    short_number(stage.times.end.us()), name(hardware, stage.step));
    if (stage.mover) text += fmt::format(", {}", to_string(stage.bytes));
    text += "\n";
    const std::string limit = name(hardware, stage.limit);
    if (!limit.empty() && !stage.hops.empty())
      text += fmt::format("       at most: {}, {}\n", limit,
                          short_number(stage.limit_rate.gigabytes_per_second()) + " GB/s");
    std::vector<std::vector<std::string>> rows;
    for (const sim::HopReport& hop : stage.hops)
      rows.push_back(
          {fmt::format("       {} > {}", hop.from, hop.to), hop.link,
           hop.bandwidth ? short_number(hop.bandwidth->gigabytes_per_second()) + " GB/s" : "",
           fmt::format("{:.0f} ns", hop.latency.ns()), short_bytes(hop.bytes)});
    text += table(rows);
  }
  return text;
}

json::Value path_to_json(const Hardware& hardware, const sim::Explanation& path) {
  json::Value value = prediction_to_json(hardware, path.prediction);
  json::Array stages;
  for (const sim::StageReport& stage : path.stages) {
    json::Array hops;
    for (const sim::HopReport& hop : stage.hops)
      hops.emplace_back(json::Object{
          {"from", hop.from},
          {"to", hop.to},
          {"link", hop.link},
          {"bandwidth_GBps",
           hop.bandwidth ? rounded(hop.bandwidth->gigabytes_per_second()) : json::Value()},
          {"latency_ns", rounded(hop.latency.ns())},
          {"bytes", json::Value(static_cast<std::int64_t>(std::llround(hop.bytes)))}});
    const std::string limit = name(hardware, stage.limit);
    stages.emplace_back(json::Object{
        {"name", name(hardware, stage.step)},
        {"mover", stage.mover ? json::Value(to_string(*stage.mover)) : json::Value()},
        {"from", stage.from},
        {"to", stage.to},
        {"bytes", stage.bytes.count},
        {"begin_us", rounded(stage.times.begin.us())},
        {"end_us", rounded(stage.times.end.us())},
        {"latency_ns", rounded(stage.latency.ns())},
        {"limit", limit},
        {"limit_GBps",
         limit.empty() ? json::Value() : rounded(stage.limit_rate.gigabytes_per_second())},
        {"hops", std::move(hops)}});
  }
  value.set("stages", std::move(stages));
  return value;
}

}  // namespace

std::string to_text(const Explanations& explanations) {
  const auto& [hardware, from, to, paths] = explanations;
  const Graph& graph = hardware.graph();
  const Transfer& transfer = paths.front().prediction.transfer;
  std::string text =
      fmt::format("{}: {} to {}\n{} of {}, one message alone\n\n{}", graph.topology().name, from,
                  to, to_string(transfer.operation), to_string(transfer.size), comparison(paths));
  for (const sim::Explanation& path : paths) text += stages_text(hardware, path);
  return text +
         "\nTimes of a stage: its first piece starts, its last piece is at the next stage.\n"
         "Hops: link, what it carries per second (PCIe and network: headers included),\nlatency "
         "at its far end, bytes on it. What bounds a step beside its links\nfollows \"at most\".\n"
         "Latency: until the last byte is in the target memory; done: until the sender\nhas its "
         "completion (with staged and tcp before the other side's copies).\n"
         "Steady: with 128 messages under way. Host memory passes: reads and writes of it\nfor "
         "each byte, all hosts. Cores: kept busy at the steady rate.\n";
}

json::Value to_json(const Explanations& explanations) {
  json::Array list;
  for (const sim::Explanation& path : explanations.paths)
    list.push_back(path_to_json(explanations.hardware, path));
  return json::Object{{"format", 1},
                      {"topology", explanations.hardware.graph().topology().name},
                      {"from", explanations.from},
                      {"to", explanations.to},
                      {"paths", std::move(list)}};
}

}  // namespace gdr::report
