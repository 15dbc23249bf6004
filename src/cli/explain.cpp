#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/predict.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/transfer_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/report/explain_html.hpp"
#include "src/report/explain_trace.hpp"
#include "src/report/names.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {
namespace {

struct ExplainOptions : TransferOptions {
  std::string trace;
  std::string html;
};

/// "1.05 MB": what a link carries, in decimal units as rates are.
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

/// The paths side by side, a column each.
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
  std::string text = "limited by " + sim::name(hardware, path.prediction.bottleneck);
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
                    short_number(stage.times.end.us()), sim::name(hardware, stage.step));
    if (stage.mover) text += fmt::format(", {}", to_string(stage.bytes));
    text += "\n";
    const std::string limit = sim::name(hardware, stage.limit);
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

std::string to_text(const Hardware& hardware, const std::vector<sim::Explanation>& paths,
                    const TransferOptions& options) {
  std::string text =
      fmt::format("{}: {} to {}\n{} of {}, one message alone\n\n{}",
                  hardware.graph().topology().name, options.from, options.to, options.operation,
                  to_string(paths.front().prediction.transfer.size), comparison(paths));
  for (const sim::Explanation& path : paths) text += stages_text(hardware, path);
  return text +
         "\nTimes of a stage: its first piece starts, its last piece is at the next stage.\n"
         "Hops: link, what it carries in a second (PCIe and network: headers included),\nlatency "
         "at its far end, bytes on it. What bounds a step beside its links\nfollows \"at most\".\n"
         "Latency: until the last byte is in the target memory; done: until the sender\nhas its "
         "completion (with staged and tcp before the other side's copies).\n"
         "Steady: with 128 messages under way. Host memory passes: reads and writes of it\nfor "
         "each byte, all hosts. Cores: kept busy at the steady rate.\n";
}

json::Value path_to_json(const Hardware& hardware, const sim::Explanation& path) {
  json::Value value = prediction_to_json(hardware, path.prediction);
  json::Array stages;
  for (const sim::StageReport& stage : path.stages) {
    const std::string limit = sim::name(hardware, stage.limit);
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
    stages.emplace_back(json::Object{
        {"name", sim::name(hardware, stage.step)},
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

std::vector<TracedPath> trace_paths(sim::Simulator& simulator, const Hardware& hardware,
                                    const std::vector<sim::Explanation>& paths) {
  std::vector<TracedPath> traced;
  for (const sim::Explanation& path : paths)
    traced.push_back({std::string(to_string(path.prediction.transfer.path)),
                      sim::timeline(simulator, hardware, path.prediction.transfer)});
  return traced;
}

/// Files first, so that a message too large for them is said before anything is printed.
void write_files(const ExplainOptions& options, const Hardware& hardware,
                 const std::vector<sim::Explanation>& paths,
                 const std::vector<TracedPath>& traced) {
  if (!options.trace.empty()) write_file(options.trace, to_trace(hardware, traced));
  if (!options.html.empty())
    write_file(
        options.html,
        explanation_to_html(hardware, paths, traced,
                            fmt::format("{}: {} from {} to {}", hardware.graph().topology().name,
                                        to_string(paths.front().prediction.transfer.size),
                                        options.from, options.to)));
}

void run(const ExplainOptions& options, const ModelLibrary& models) {
  const Topology topology = load(options, models);
  const Graph graph(topology);
  const Hardware hardware(graph, models);
  if (parse_sizes(options.sizes).size() != 1)
    throw InputError(fmt::format("--size {}: explain takes one size", options.sizes));
  sim::Simulator simulator;
  std::vector<sim::Explanation> paths;
  const Verdict verdict = judge(graph, models);
  std::string skipped;
  for (const Transfer& asked : transfers_of(graph, options)) {
    try {
      const Transfer transfer = with_best_nics(topology, verdict, asked);
      const PathVerdict answer = verdict_of(graph, models, verdict, transfer);
      if (answer.answer == PairAnswer::blocked) throw InputError(answer.reason);
      paths.push_back(sim::explain(simulator, hardware, transfer, {}));
    } catch (const InputError& error) {
      // A path that was asked for by name must work; of "all", those that do are shown.
      if (options.path != "all") throw;
      skipped +=
          "\n" +
          wrapped(fmt::format("{}: not possible: {}", to_string(asked.path), error.what()), 2) +
          "\n";
    }
  }
  if (paths.empty()) throw InputError("no path leads from one to the other:" + skipped);
  const bool files = !options.trace.empty() || !options.html.empty();
  std::vector<TracedPath> traced;
  try {
    traced = trace_paths(simulator, hardware, paths);
  } catch (const InputError&) {
    if (files) throw;  // the text does without a time line
  }
  write_files(options, hardware, paths, traced);
  if (options.format == "text") {
    write_file("-", to_text(hardware, paths, options) + time_line_text(hardware, traced) + skipped);
    return;
  }
  json::Array list;
  for (const sim::Explanation& path : paths) list.push_back(path_to_json(hardware, path));
  write_file("-", json::dump(json::Object{{"format", 1},
                                          {"topology", topology.name},
                                          {"from", options.from},
                                          {"to", options.to},
                                          {"paths", std::move(list)}}));
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "explain", "Show every stage and hop of a transfer, several paths side by side");
  auto options = std::make_shared<ExplainOptions>();
  options->sizes = "1MiB";
  add_transfer_options(*command, *options, {"text", "json"}, true);
  command->get_option("--size")
      ->description("size of the message, 1B to 16GiB")
      ->capture_default_str();
  command->add_option(
      "--trace", options->trace,
      "write a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: one track a resource");
  command->add_option(
      "--html", options->html,
      "write a page with the servers' trees, the way of each path and its time line");
  command->footer(
      "Example:\n"
      "  gdr explain topologies/clusters/two-dgx-a100.json \\\n"
      "      --from h0/gpu0 --to h1/gpu0 --path gdr,staged --size 1MiB");
  command->callback([options, &context] { run(*options, *context.models); });
}

}  // namespace gdr::cli
