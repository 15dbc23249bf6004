#include "src/report/predict_report.hpp"

#include <fmt/format.h>

#include <utility>

#include "src/report/names.hpp"
#include "src/report/output.hpp"
#include "src/report/predict_range.hpp"

namespace gdr::report {
namespace {

using study::Answer;

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

PathKind path_of(const Answer& answer) { return answer.admission.transfer.path; }

/// "h0/gpu0 with h0/nic0: rules with a finding about the pair"
std::string rules_text(const Pair& pair) {
  std::string rules;
  for (const std::string& rule : pair.findings) rules += (rules.empty() ? "" : ", ") + rule;
  return fmt::format("{} with {}: {}", pair.from, pair.to, rules);
}

std::string path_heading(const Predictions& all, const Answer& answer) {
  std::string text =
      fmt::format("\n{}: {}\n", to_string(path_of(answer)), describe_path(path_of(answer)));
  if (const std::string nics = nics_of(all.hardware.graph(), *answer.prediction()); !nics.empty())
    text += fmt::format("  by {}, one NIC per host (--via chooses)\n", nics);
  if (const auto& worst = answer.admission.worst)
    text += "  " +
            wrapped(fmt::format("verdict: {}, {} (gdr check says more)",
                                gdr::to_string(answer.admission.verdict),
                                rules_text(all.verdict.pairs.at(*worst))),
                    4, 78) +
            "\n";
  return text + open_to_text(all.hardware.graph(), answer.prediction()->stages);
}

/// Where the queue depth is the limit, messages wait for each other: names the step that they wait
/// for most.
std::string waits_text(const Predictions& all, std::size_t begin, std::size_t end) {
  std::vector<std::pair<std::string, std::string>> steps;  // sizes, step
  for (std::size_t i = begin; i < end; ++i) {
    const sim::Prediction& p = *all.answers[i].prediction();
    const auto& step = p.longest_step;
    if (!step) continue;
    const std::string size =
        fmt::format("{} {}", to_string(p.transfer.size), short_number(step->time.us()));
    const std::string words = name(all.hardware, step->step);
    if (!steps.empty() && steps.back().second == words) steps.back().first += ", " + size;
    else steps.emplace_back(size, words);
  }
  std::string text;
  for (const auto& [sizes, step] : steps)
    text += fmt::format("{}{} (us: {})", text.empty() ? "" : "; ", step, sizes);
  return text.empty()
             ? text
             : "  " + wrapped("At this queue depth the longest step is: " + text, 4, 76) + "\n";
}

constexpr const char* csv_header =
    "from,to,path,operation,size_bytes,latency_us,completion_us,bandwidth_GBps,bottleneck,cpu_"
    "cores,host_memory_bytes_per_byte,dram_bytes_per_byte,pcie_bytes_per_byte\n";

std::string csv_line(const Hardware& hardware, const sim::Prediction& p) {
  const Graph& graph = hardware.graph();
  return fmt::format(
      "{},{},{},{},{},{:.6g},{:.6g},{:.6g},{},{:.6g},{:.6g},{:.6g},{:.6g}\n",
      from_label(graph, p.transfer), to_label(graph, p.transfer), to_string(p.transfer.path),
      to_string(p.transfer.operation), p.transfer.size.count, p.latency.us(), p.completion.us(),
      p.bandwidth.gigabytes_per_second(), csv_quoted(name(hardware, p.bottleneck)), p.cpu_cores,
      p.host_memory_bytes_per_byte, p.dram_bytes_per_byte, p.pcie_bytes_per_byte);
}

json::Value index_json(const std::optional<std::size_t>& index) {
  return index ? json::Value(static_cast<std::int64_t>(*index)) : json::Value();
}

json::Value answer_to_json(const Predictions& all, const Answer& answer) {
  json::Value value = prediction_to_json(all.hardware, *answer.prediction());
  value.set("verdict", gdr::to_string(answer.admission.verdict));
  json::Array nics;
  for (const study::TakenNic& taken : answer.admission.nics)
    nics.emplace_back(json::Object{{"nic", label(all.hardware.graph().topology(), taken.nic)},
                                   {"reason", to_string(taken.reason)}});
  value.set("nics", std::move(nics));
  json::Array pairs;
  for (const std::size_t pair : answer.admission.pairs) pairs.push_back(index_json(pair));
  value.set("pairs", std::move(pairs));
  if (answer.range) put_range(value, *answer.range);
  return value;
}

json::Value refusal_to_json(const Verdict& verdict, const Answer& answer) {
  const study::Refusal& refusal = *answer.refusal();
  return json::Object{{"path", to_string(path_of(answer))},
                      {"reason", study::reason_of(refusal, verdict)},
                      {"kind", to_string(refusal.kind)},
                      {"pair", index_json(refusal.pair)},
                      {"finding", index_json(refusal.finding)}};
}

constexpr const char* legend =
    "\nlatency: one message alone, from its post to its last byte in the target memory;\n"
    "done: until the sender has its completion. GB/s: 10^9 payload bytes per second,\n"
    "steady. cores: kept busy at that rate. Bytes per payload byte count both hosts:\n"
    "host memory each read or write of it, DRAM those that the CPU's cache does not\ntake (DDIO), "
    "PCIe every link with its headers.\n";

}  // namespace

std::string refusal_text(const Answer& answer, const Verdict& verdict) {
  return fmt::format("{}: not possible: {}", to_string(path_of(answer)),
                     study::reason_of(*answer.refusal(), verdict));
}

std::string to_text(const Predictions& all) {
  std::string text = fmt::format(
      "{}: {} to {}\n{}, queue depth {}, {} queue pair{}{}\n", all.hardware.graph().topology().name,
      all.from, all.to, all.operation, all.options.depth, all.options.queue_pairs,
      all.options.queue_pairs == 1 ? "" : "s",
      all.options.bidirectional ? ", both directions (GB/s are sums)" : "");
  for (std::size_t i = 0; i < all.answers.size();) {
    const PathKind path = path_of(all.answers[i]);
    std::vector<std::vector<std::string>> rows{
        {"  size", "latency us", "done us", "GB/s", "cores", "limited by"}};
    std::size_t end = i;
    for (; end < all.answers.size() && path_of(all.answers[end]) == path; ++end) {
      const sim::Prediction& p = *all.answers[end].prediction();
      rows.push_back(
          {"  " + to_string(p.transfer.size), short_number(p.latency.us()),
           short_number(p.completion.us()), short_number(p.bandwidth.gigabytes_per_second()),
           fmt::format("{:.2f}", p.cpu_cores), name(all.hardware, p.bottleneck).substr(0, 32)});
    }
    const sim::Prediction& last = *all.answers[end - 1].prediction();
    text += path_heading(all, all.answers[end - 1]);
    text += fmt::format("  bytes per payload byte: host memory {:g}, DRAM {:g}, PCIe {:.2f}\n",
                        last.host_memory_bytes_per_byte, last.dram_bytes_per_byte,
                        last.pcie_bytes_per_byte);
    text += table(rows);
    text += waits_text(all, i, end);
    i = end;
  }
  if (all.ranges()) text += ranges_to_text(all.answers);
  for (const Answer& refused : all.refused)
    text += "\n" + wrapped(refusal_text(refused, all.verdict), 2) + "\n";
  return text + legend;
}

json::Value to_json(const Predictions& all) {
  json::Array list;
  for (const Answer& answer : all.answers) list.push_back(answer_to_json(all, answer));
  json::Array skipped;
  for (const Answer& refused : all.refused)
    skipped.push_back(refusal_to_json(all.verdict, refused));
  json::Value document(json::Object{{"format", 1},
                                    {"topology", all.hardware.graph().topology().name},
                                    {"from", all.from},
                                    {"to", all.to},
                                    {"results", std::move(list)}});
  if (!skipped.empty()) document.set("skipped", std::move(skipped));
  return document;
}

std::string to_csv(const Predictions& all) {
  std::string text = csv_header;
  for (const Answer& answer : all.answers) text += csv_line(all.hardware, *answer.prediction());
  return text;
}

std::string to_text(const FlowPredictions& together) {
  const auto& [hardware, flows, predictions] = together;
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
         name(hardware, p.bottleneck).substr(0, 22)});
  }
  return fmt::format("{}: {} flows together\n\n{}\nsum of bandwidths: {} GB/s\n",
                     graph.topology().name, flows.size(), table(rows), short_number(sum));
}

json::Value to_json(const FlowPredictions& together) {
  const auto& [hardware, flows, predictions] = together;
  const Graph& graph = hardware.graph();
  json::Array list;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    json::Value result = prediction_to_json(hardware, predictions[i]);
    result.set("from", from_label(graph, flows[i].transfer));
    result.set("to", to_label(graph, flows[i].transfer));
    result.set("start_us", rounded(flows[i].start.us()));
    list.push_back(std::move(result));
  }
  return json::Object{
      {"format", 1}, {"topology", graph.topology().name}, {"results", std::move(list)}};
}

std::string to_csv(const FlowPredictions& together) {
  std::string text = csv_header;
  for (const sim::Prediction& p : together.predictions) text += csv_line(together.hardware, p);
  return text;
}

}  // namespace gdr::report
