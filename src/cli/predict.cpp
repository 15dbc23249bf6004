#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include "sim/predict.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/progress.hpp"
#include "src/cli/transfer_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/json_reader.hpp"
#include "src/report/names.hpp"
#include "src/report/output.hpp"
#include "src/report/predict_range.hpp"

namespace gdr::cli {
namespace {

struct PredictOptions : TransferOptions {
  int depth = 128;
  int queue_pairs = 1;
  int completion_every = 1;
  bool bidirectional = false;
  bool range = false;
  std::string flows;
};

/// A path that was asked for and gives no prediction.
struct Skipped {
  PathKind path = PathKind::gdr;
  std::string reason;
  bool blocked = false;  ///< by the verdict; otherwise the path does not exist here
};

struct Results {
  std::vector<sim::Prediction> predictions;
  std::vector<PredictionRange> ranges;  ///< one a prediction, when asked for
  std::map<PathKind, PathVerdict> verdicts;
  std::vector<Skipped> skipped;
};

Results run_transfers(sim::Simulator& simulator, const Hardware& hardware,
                      const PredictOptions& options) {
  const std::vector<Transfer> transfers = transfers_of(hardware.graph(), options);
  const Verdict verdict = judge(hardware.graph(), hardware.models());
  Results results;
  // A range takes many runs.
  Progress progress("predicting", transfers.size(), options.range ? 1 : 10);
  for (const Transfer& asked : transfers) {
    const Transfer transfer = with_best_nics(hardware.graph().topology(), verdict, asked);
    if (!results.skipped.empty() && results.skipped.back().path == transfer.path) continue;
    try {
      const PathVerdict answer = verdict_of(hardware.graph(), hardware.models(), verdict, transfer);
      results.verdicts[transfer.path] = answer;
      if (answer.answer == PairAnswer::blocked) {
        results.skipped.push_back({transfer.path, answer.reason, true});
        continue;
      }
      const sim::Options how{options.depth, options.queue_pairs, options.bidirectional,
                             options.completion_every};
      results.predictions.push_back(sim::predict(simulator, hardware, transfer, how));
      if (options.range) results.ranges.push_back(range_of(simulator, hardware, transfer, how));
    } catch (const InputError& error) {
      // A path that was asked for by name must exist; of "all", those that do are shown.
      if (options.path != "all") throw;
      results.skipped.push_back({transfer.path, error.what(), false});
    }
    progress.step();
  }
  const bool any_blocked = std::any_of(results.skipped.begin(), results.skipped.end(),
                                       [](const Skipped& s) { return s.blocked; });
  if (results.predictions.empty() && !any_blocked) throw InputError(results.skipped.front().reason);
  return results;
}

std::string describe_path(PathKind path) {
  switch (path) {
    case PathKind::gdr:
      return "NICs read and write GPU memory";
    case PathKind::staged:
      return "copied through bounce buffers in host memory";
    case PathKind::tcp:
      return "host memory and the kernel's sockets";
    case PathKind::rdma:
      return "host memory to host memory by RDMA";
    case PathKind::p2p:
      return "one GPU's copy engine on the other's memory, over PCIe";
    case PathKind::nvlink:
      return "the same over NVLink or xGMI";
    case PathKind::copy:
      return "a GPU's copy engine and page-locked host memory";
    case PathKind::dma:
      return "the device's DMA engine and host memory";
    case PathKind::gds:
      return "the drive's DMA engine on GPU memory (GPUDirect Storage)";
    case PathKind::load_store:
      return "loads and stores of GPU threads";
  }
  return {};
}

/// The NICs that the stages of a prediction use, in order.
std::string nics_of(const Graph& graph, const sim::Prediction& prediction) {
  std::string nics;
  for (const Stage& stage : prediction.stages) {
    if (stage.mover != Mover::wire) continue;
    nics = fmt::format("{} and {}", graph.label(stage.from), graph.label(stage.to));
  }
  return nics;
}

std::string path_heading(const Graph& graph, PathKind path, const Results& results,
                         const sim::Prediction& prediction) {
  std::string text = fmt::format("\n{}: {}\n", to_string(path), describe_path(path));
  if (const std::string nics = nics_of(graph, prediction); !nics.empty())
    text += fmt::format("  by {}, one NIC a host (--via chooses)\n", nics);
  const PathVerdict& verdict = results.verdicts.at(path);
  if (verdict.answer != PairAnswer::works)
    text += "  " +
            wrapped(fmt::format("verdict: {}, {} (gdr check says more)", to_string(verdict.answer),
                                verdict.reason),
                    4, 78) +
            "\n";
  return text + open_to_text(graph, prediction.stages);
}

/// Where the queue depth is the limit, messages wait for each other: for which step most.
std::string waits_text(const Hardware& hardware, const std::vector<sim::Prediction>& predictions,
                       std::size_t begin, std::size_t end) {
  std::vector<std::pair<std::string, std::string>> steps;  // sizes, step
  for (std::size_t i = begin; i < end; ++i) {
    const auto& step = predictions[i].longest_step;
    if (!step) continue;
    const std::string size = fmt::format("{} {}", to_string(predictions[i].transfer.size),
                                         short_number(step->time.us()));
    const std::string name = sim::name(hardware, step->step);
    if (!steps.empty() && steps.back().second == name) steps.back().first += ", " + size;
    else steps.emplace_back(size, name);
  }
  std::string text;
  for (const auto& [sizes, step] : steps)
    text += fmt::format("{}{} (us: {})", text.empty() ? "" : "; ", step, sizes);
  return text.empty()
             ? text
             : "  " + wrapped("At this queue depth the longest step is: " + text, 4, 76) + "\n";
}

constexpr const char* legend =
    "\nlatency: one message alone, from its post to its last byte in the target memory;\n"
    "done: until the sender has its completion. GB/s: 10^9 payload bytes per second,\n"
    "steady. cores: kept busy at that rate. Bytes per payload byte count both hosts:\n"
    "host memory each read or write of it, DRAM those that the CPU's cache does not\ntake (DDIO), "
    "PCIe every link with its headers.\n";

std::string to_text(const Hardware& hardware, const Results& results,
                    const PredictOptions& options) {
  const Graph& graph = hardware.graph();
  std::string text =
      fmt::format("{}: {} to {}\n{}, queue depth {}, {} queue pair{}{}\n", graph.topology().name,
                  options.from, options.to, options.operation, options.depth, options.queue_pairs,
                  options.queue_pairs == 1 ? "" : "s",
                  options.bidirectional ? ", both directions (GB/s are sums)" : "");
  for (std::size_t i = 0; i < results.predictions.size();) {
    const PathKind path = results.predictions[i].transfer.path;
    std::vector<std::vector<std::string>> rows{
        {"  size", "latency us", "done us", "GB/s", "cores", "limited by"}};
    std::size_t end = i;
    for (; end < results.predictions.size() && results.predictions[end].transfer.path == path;
         ++end) {
      const sim::Prediction& p = results.predictions[end];
      rows.push_back(
          {"  " + to_string(p.transfer.size), short_number(p.latency.us()),
           short_number(p.completion.us()), short_number(p.bandwidth.gigabytes_per_second()),
           fmt::format("{:.2f}", p.cpu_cores), sim::name(hardware, p.bottleneck).substr(0, 32)});
    }
    const sim::Prediction& last = results.predictions[end - 1];
    text += path_heading(graph, path, results, last);
    text += fmt::format("  bytes per payload byte: host memory {:g}, DRAM {:g}, PCIe {:.2f}\n",
                        last.host_memory_bytes_per_byte, last.dram_bytes_per_byte,
                        last.pcie_bytes_per_byte);
    text += table(rows);
    text += waits_text(hardware, results.predictions, i, end);
    i = end;
  }
  if (!results.ranges.empty()) text += ranges_to_text(results.predictions, results.ranges);
  for (const Skipped& skipped : results.skipped)
    text +=
        "\n" +
        wrapped(fmt::format("{}: not possible: {}", to_string(skipped.path), skipped.reason), 2) +
        "\n";
  return text + legend;
}

std::string to_json_text(const Hardware& hardware, const Results& results,
                         const PredictOptions& options) {
  const Graph& graph = hardware.graph();
  json::Array list;
  for (const sim::Prediction& prediction : results.predictions) {
    list.push_back(prediction_to_json(hardware, prediction));
    list.back().set("verdict", to_string(results.verdicts.at(prediction.transfer.path).answer));
    if (!results.ranges.empty()) put_range(list.back(), results.ranges[list.size() - 1]);
  }
  json::Array skipped;
  for (const Skipped& skip : results.skipped)
    skipped.emplace_back(json::Object{{"path", to_string(skip.path)}, {"reason", skip.reason}});
  json::Value document(json::Object{{"format", 1},
                                    {"topology", graph.topology().name},
                                    {"from", options.from},
                                    {"to", options.to},
                                    {"results", std::move(list)}});
  if (!skipped.empty()) document.set("skipped", std::move(skipped));
  return json::dump(document);
}

std::string csv_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

std::string to_csv(const Hardware& hardware, const std::vector<sim::Prediction>& predictions) {
  const Graph& graph = hardware.graph();
  std::string text =
      "from,to,path,operation,size_bytes,latency_us,completion_us,bandwidth_GBps,bottleneck,cpu_"
      "cores,host_memory_bytes_per_byte,"
      "dram_bytes_per_byte,pcie_bytes_per_byte\n";
  for (const sim::Prediction& p : predictions)
    text += fmt::format(
        "{},{},{},{},{},{:.6g},{:.6g},{:.6g},{},{:.6g},{:.6g},{:.6g},{:.6g}\n",
        from_label(graph, p.transfer), to_label(graph, p.transfer), to_string(p.transfer.path),
        to_string(p.transfer.operation), p.transfer.size.count, p.latency.us(), p.completion.us(),
        p.bandwidth.gigabytes_per_second(), csv_quoted(sim::name(hardware, p.bottleneck)),
        p.cpu_cores, p.host_memory_bytes_per_byte, p.dram_bytes_per_byte, p.pcie_bytes_per_byte);
  return text;
}

/// {"format": 1, "flows": [{"from", "to", "path", "operation", "size", "start", "via"}...]}
std::vector<sim::TimedTransfer> read_flows(const Topology& topology, const std::string& file) {
  const json::Value document = json::parse_file(file);
  json::ObjectReader object(json::Node(document, file));
  object.expect_format();
  std::vector<sim::TimedTransfer> flows;
  const auto resolve = [](const json::Node& node, auto parse) {
    try {
      return parse(node.string());
    } catch (const InputError& error) {
      node.fail(error.what());
    }
  };
  for (const json::Node& node : object.required("flows").array()) {
    json::ObjectReader flow(node);
    sim::TimedTransfer& timed = flows.emplace_back();
    const auto device = [&](const std::string& text) { return find_device(topology, text); };
    const auto end = [&](const std::string& text) { return find_end(topology, text); };
    const End from = resolve(flow.required("from"), end);
    const json::Node to = flow.required("to");
    const End reached = resolve(to, end);
    resolve(to, [&](const std::string&) { set_ends(topology, from, reached, timed.transfer); });
    timed.transfer.path = resolve(flow.required("path"), parse_path);
    if (timed.transfer.path == PathKind::rdma) timed.transfer.memory = MemoryKind::host;
    timed.transfer.size = flow.required("size").bytes();
    if (const auto n = flow.optional("operation"))
      timed.transfer.operation = resolve(*n, parse_operation);
    if (const auto n = flow.optional("start")) timed.start = n->duration();
    if (const auto n = flow.optional("via"))
      for (const json::Node& nic : n->array()) timed.transfer.via.push_back(resolve(nic, device));
    flow.finish();
  }
  object.finish();
  if (flows.empty()) object.node().fail("\"flows\" is empty; list at least one");
  return flows;
}

/// A flow that cannot run is refused with its place in the file; NICs that it leaves open are those
/// of the verdict.
void check_flows(const Hardware& hardware, const std::string& file,
                 std::vector<sim::TimedTransfer>& flows) {
  const Verdict verdict = judge(hardware.graph(), hardware.models());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    Transfer& transfer = flows[i].transfer;
    try {
      transfer = with_best_nics(hardware.graph().topology(), verdict, transfer);
      (void)plan_transfer(hardware.graph(), hardware.models(), transfer);
      const PathVerdict answer = verdict_of(hardware.graph(), hardware.models(), verdict, transfer);
      if (answer.answer == PairAnswer::blocked) throw InputError(answer.reason);
      if (flows[i].start.seconds > 3600)
        throw InputError("\"start\" is more than 1h after the first");
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: at /flows/{}: {}", file, i, error.what()));
    }
  }
}

std::string flows_to_text(const Hardware& hardware, const std::vector<sim::TimedTransfer>& flows,
                          const std::vector<sim::Prediction>& predictions) {
  const Graph& graph = hardware.graph();
  std::vector<std::vector<std::string>> rows{
      {"flow", "path", "size", "start us", "took us", "GB/s", "limited by"}};
  double sum = 0;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const sim::Prediction& p = predictions[i];
    sum += p.bandwidth.gigabytes_per_second();
    rows.push_back(
        {fmt::format("{} {}", from_label(graph, p.transfer), to_label(graph, p.transfer)),
         std::string(to_string(p.transfer.path)), to_string(p.transfer.size),
         short_number(flows[i].start.us()), short_number(p.latency.us()),
         short_number(p.bandwidth.gigabytes_per_second()),
         sim::name(hardware, p.bottleneck).substr(0, 22)});
  }
  return fmt::format("{}: {} flows together\n\n{}\nsum of bandwidths: {} GB/s\n",
                     graph.topology().name, flows.size(), table(rows), short_number(sum));
}

void run_flows(const Hardware& hardware, const PredictOptions& options) {
  const Graph& graph = hardware.graph();
  auto flows = read_flows(graph.topology(), options.flows);
  check_flows(hardware, options.flows, flows);
  sim::Simulator simulator;
  const auto predictions =
      sim::predict_together(simulator, hardware, flows,
                            {options.depth, options.queue_pairs, false, options.completion_every});
  if (options.format == "csv") {
    write_file("-", to_csv(hardware, predictions));
  } else if (options.format == "text") {
    write_file("-", flows_to_text(hardware, flows, predictions));
  } else {
    json::Array list;
    for (std::size_t i = 0; i < flows.size(); ++i) {
      json::Value result = prediction_to_json(hardware, predictions[i]);
      result.set("from", from_label(graph, flows[i].transfer));
      result.set("to", to_label(graph, flows[i].transfer));
      result.set("start_us", rounded(flows[i].start.us()));
      list.push_back(std::move(result));
    }
    write_file("-", json::dump(json::Object{{"format", 1},
                                            {"topology", graph.topology().name},
                                            {"results", std::move(list)}}));
  }
}

/// 1 when a path that was asked for by name is blocked, or every path is.
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
  const Results results = run_transfers(simulator, hardware, options);
  if (options.format == "json") {
    write_file("-", to_json_text(hardware, results, options));
  } else if (options.format == "csv") {
    write_file("-", to_csv(hardware, results.predictions));
    for (const Skipped& skipped : results.skipped)
      std::fprintf(stderr, "gdr: %s: not possible: %s\n",
                   std::string(to_string(skipped.path)).c_str(), skipped.reason.c_str());
  } else {
    write_file("-", to_text(hardware, results, options));
  }
  const bool named = options.path != "all";
  return results.predictions.empty() || (named && !results.skipped.empty()) ? 1 : 0;
}

}  // namespace

void add_predict(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("predict", "Predict latency and bandwidth of each data path");
  auto options = std::make_shared<PredictOptions>();
  options->sizes = "8B,4KiB,64KiB,1MiB,64MiB";
  add_transfer_options(*command, *options, {"text", "json", "csv"}, false);
  command->get_option("--size")->capture_default_str();
  command->add_option("--depth", options->depth, "messages posted and not completed, for bandwidth")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_option("--queue-pairs", options->queue_pairs, "queue pairs that share the transfer")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command
      ->add_option(
          "--completion-every", options->completion_every,
          "messages that one completion stands for (perftest: 100, or the depth if that is less)")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  command->add_flag("--bidirectional", options->bidirectional,
                    "the same the other way at once; bandwidths are sums");
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
    // Every flow of a file says these for itself; silence would look like obedience.
    if (!options->flows.empty())
      for (const char* name :
           {"--initiator", "--work-request", "--inline", "--pageable", "--window", "--range"})
        if (command->get_option(name)->count() > 0)
          throw InputError(fmt::format("{} and --flows exclude each other", name));
    if (!options->flows.empty())
      for (const char* name : {"--from", "--to", "--path", "--operation", "--size", "--via",
                               "--memory", "--bidirectional"})
        if (command->get_option(name)->count() > 0)
          throw InputError(fmt::format(
              "{} and --flows exclude each other: the file says it for each flow", name));
    context.exit_code = run(*options, *context.models);
  });
}

}  // namespace gdr::cli
