#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "sim/predict.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/transfer_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/report/explain_html.hpp"
#include "src/report/explain_report.hpp"
#include "src/report/explain_trace.hpp"
#include "src/report/output.hpp"
#include "src/study/ask.hpp"

namespace gdr::cli {
namespace {

struct ExplainOptions : TransferOptions {
  std::string trace;
  std::string html;
};

std::vector<TracedPath> trace_paths(sim::Simulator& simulator, const Hardware& hardware,
                                    const std::vector<sim::Explanation>& paths) {
  std::vector<TracedPath> traced;
  for (const sim::Explanation& path : paths)
    traced.push_back({std::string(to_string(path.prediction.transfer.path)),
                      sim::timeline(simulator, hardware, path.prediction.transfer)});
  return traced;
}

/// Called before anything is printed, so that a message too large for a file is reported first.
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
  report::Explanations all{hardware, options.from, options.to, {}};
  const Verdict verdict = judge(graph, models);
  std::string skipped;
  for (const Transfer& asked : transfers_of(graph, options)) {
    const study::Admission admission = study::admit(graph, models, verdict, asked);
    if (!admission.refusal) {
      all.paths.push_back(sim::explain(simulator, hardware, admission.transfer, {}));
      continue;
    }
    // A path requested by name must work; of "all", those that do are shown.
    const std::string reason = study::reason_of(*admission.refusal, verdict);
    if (options.path != "all") throw InputError(reason);
    skipped += "\n" +
               wrapped(fmt::format("{}: not possible: {}", to_string(asked.path), reason), 2) +
               "\n";
  }
  const std::vector<sim::Explanation>& paths = all.paths;
  if (paths.empty()) throw InputError("no path leads from one to the other:" + skipped);
  const bool files = !options.trace.empty() || !options.html.empty();
  std::vector<TracedPath> traced;
  try {
    traced = trace_paths(simulator, hardware, paths);
  } catch (const InputError&) {
    if (files) throw;  // the text can do without a time line
  }
  write_files(options, hardware, paths, traced);
  if (options.format == "text") {
    write_file("-", report::to_text(all) + time_line_text(hardware, traced) + skipped);
    return;
  }
  write_file("-", json::dump(report::to_json(all)));
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
      "write a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: one track per resource");
  command->add_option(
      "--html", options->html,
      "write a page with the servers' trees, the route of each path and its time line");
  command->footer(
      "Example:\n"
      "  gdr explain topologies/clusters/two-dgx-a100.json \\\n"
      "      --from h0/gpu0 --to h1/gpu0 --path gdr,staged --size 1MiB");
  command->callback([options, &context] { run(*options, *context.models); });
}

}  // namespace gdr::cli
