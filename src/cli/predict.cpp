#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/progress.hpp"
#include "src/cli/transfer_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/report/predict_report.hpp"
#include "src/study/question_json.hpp"

namespace gdr::cli {
namespace {

struct PredictOptions : TransferOptions {
  sim::Options how;
  bool range = false;
  std::string flows;
};

/// Asks for each path and size; skips the other sizes of a path that is refused.
void ask_all(sim::Simulator& simulator, const Hardware& hardware, const PredictOptions& options,
             report::Predictions& all) {
  const std::vector<Transfer> transfers = transfers_of(hardware.graph(), options);
  // A range takes many runs.
  Progress progress("predicting", transfers.size(), options.range ? 1 : 10);
  for (const Transfer& transfer : transfers) {
    if (!all.refused.empty() && all.refused.back().admission.transfer.path == transfer.path)
      continue;
    study::Answer answer =
        study::ask(hardware, all.verdict, simulator, {transfer, options.how, options.range});
    const study::Refusal* refusal = answer.refusal();
    // A path requested by name must exist; of "all", those that do are shown.
    if (refusal != nullptr && refusal->kind == study::Refusal::Kind::no_path &&
        options.path != "all")
      throw InputError(refusal->obstacle);
    (refusal == nullptr ? all.answers : all.refused).push_back(std::move(answer));
    progress.step();
  }
  const bool any_blocked =
      std::any_of(all.refused.begin(), all.refused.end(), [](const study::Answer& answer) {
        return answer.refusal()->kind == study::Refusal::Kind::blocked;
      });
  if (all.answers.empty() && !any_blocked)
    throw InputError(study::reason_of(*all.refused.front().refusal(), all.verdict));
}

/// Reads {"format": 1, "flows": [...]}: each flow is the transfer of a question, and "start".
std::vector<sim::TimedTransfer> read_flows(const Topology& topology, const std::string& file) {
  const json::Value document = json::parse_file(file);
  json::ObjectReader object(json::Node(document, file));
  object.expect_format();
  std::vector<sim::TimedTransfer> flows;
  for (const json::Node& node : object.required("flows").array()) {
    json::ObjectReader flow(node);
    sim::TimedTransfer& timed = flows.emplace_back();
    study::read_ends(flow, topology, timed.transfer);
    study::read_transfer(flow, timed.transfer);
    if (const auto n = flow.optional("start")) {
      timed.start = n->duration();
      if (timed.start.seconds > 3600) n->fail("\"start\" is more than 1h after the first");
    }
    flow.finish();
  }
  object.finish();
  if (flows.empty()) object.node().fail("\"flows\" is empty; list at least one");
  return flows;
}

/// A refused flow is an error with its place in the file; NICs that a flow does not name are those
/// of the verdict.
void admit_flows(const Graph& graph, const ModelLibrary& models, const std::string& file,
                 std::vector<sim::TimedTransfer>& flows) {
  const Verdict verdict = judge(graph, models);
  for (std::size_t i = 0; i < flows.size(); ++i) {
    std::string reason;
    try {
      study::Admission admission = study::admit(graph, models, verdict, flows[i].transfer);
      if (admission.refusal) reason = study::reason_of(*admission.refusal, verdict);
      flows[i].transfer = std::move(admission.transfer);
    } catch (const InputError& error) {
      reason = error.what();
    }
    if (!reason.empty()) throw InputError(fmt::format("{}: at /flows/{}: {}", file, i, reason));
  }
}

void run_flows(const Hardware& hardware, const PredictOptions& options) {
  report::FlowPredictions together{
      hardware, read_flows(hardware.graph().topology(), options.flows), {}};
  admit_flows(hardware.graph(), hardware.models(), options.flows, together.flows);
  sim::Simulator simulator;
  sim::Options how = options.how;
  how.bidirectional = false;
  together.predictions = sim::predict_together(simulator, hardware, together.flows, how);
  write_file("-", options.format == "csv"    ? report::to_csv(together)
                  : options.format == "text" ? report::to_text(together)
                                             : json::dump(report::to_json(together)));
}

/// 1 when a path requested by name is blocked, or every path is.
int run(const PredictOptions& options, const ModelLibrary& models) {
  const Topology topology = load(options, models);
  const Graph graph(topology);
  const Hardware hardware(graph, models);
  if (!options.flows.empty()) {
    run_flows(hardware, options);
    return 0;
  }
  if (options.range && options.format == "csv")
    throw InputError("--range goes with the formats text and json");
  if (options.from.empty() || options.to.empty())
    throw InputError("say what to predict: --from HOST/DEVICE --to HOST/DEVICE, or --flows FILE");
  sim::Simulator simulator;
  const Verdict verdict = judge(graph, models);
  report::Predictions all{hardware,          verdict,     options.from, options.to,
                          options.operation, options.how, {},           {}};
  ask_all(simulator, hardware, options, all);
  if (options.format == "json") {
    write_file("-", json::dump(report::to_json(all)));
  } else if (options.format == "csv") {
    write_file("-", report::to_csv(all));
    for (const study::Answer& refused : all.refused)
      std::fprintf(stderr, "gdr: %s\n", report::refusal_text(refused, verdict).c_str());
  } else {
    write_file("-", report::to_text(all));
  }
  const bool named = options.path != "all";
  return all.answers.empty() || (named && !all.refused.empty()) ? 1 : 0;
}

}  // namespace

void add_predict(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("predict", "Predict latency and bandwidth of each data path");
  auto options = std::make_shared<PredictOptions>();
  options->sizes = "8B,4KiB,64KiB,1MiB,64MiB";
  add_transfer_options(*command, *options, {"text", "json", "csv"}, false);
  command->get_option("--size")->capture_default_str();
  command
      ->add_option("--depth", options->how.depth,
                   "messages posted and not completed, for bandwidth")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command
      ->add_option("--queue-pairs", options->how.queue_pairs, "queue pairs that share the transfer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option(
          "--completion-every", options->how.completion_every,
          "messages that one completion stands for (perftest: 100, or the depth if that is less)")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_flag("--bidirectional", options->how.bidirectional,
                    "the same in the other direction at once; bandwidths are sums");
  command->add_flag("--range", options->range,
                    "say how far each figure may be off, and which estimates it rests on most "
                    "(text, json; seconds)");
  command->add_option("--flows", options->flows,
                      "file of transfers that run together (docs/output.md)");
  command->footer(
      "Examples:\n"
      "  gdr predict topologies/clusters/two-dgx-a100.json --from h0/gpu0 --to h1/gpu0\n"
      "  gdr predict topologies/clusters/two-dgx-a100.json --path gdr --size 1MiB \\\n"
      "      --from h0/gpu0 --to h1/gpu0 --set h0/nic0.link=gen3x8\n"
      "\n"
      "Exit codes: 0 fine, 1 a path named in --path is blocked (or every path),\n"
      "2 wrong input.");
  command->callback([options, command, &context] {
    // Flows set these themselves; ignoring the option silently would look like applying it.
    if (!options->flows.empty())
      for (const char* name :
           {"--from", "--to", "--path", "--operation", "--size", "--via", "--memory", "--initiator",
            "--work-request", "--inline", "--pageable", "--window"})
        if (command->get_option(name)->count() > 0)
          throw InputError(fmt::format(
              "{} and --flows exclude each other: the file sets it for each flow", name));
    if (!options->flows.empty())
      for (const char* name : {"--bidirectional", "--range"})
        if (command->get_option(name)->count() > 0)
          throw InputError(fmt::format("{} and --flows exclude each other", name));
    context.exit_code = run(*options, *context.models);
  });
}

}  // namespace gdr::cli
