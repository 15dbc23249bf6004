#include "src/report/nccl_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/report/output.hpp"

namespace gdr::report {
namespace {

std::string yes(std::optional<bool> answer) { return !answer ? "?" : *answer ? "yes" : "no"; }

}  // namespace

std::string to_text(const Topology& topology, std::size_t host, const nccl::Decision& decision) {
  const auto& devices = topology.hosts[host].devices;
  std::vector<std::vector<std::string>> rows{
      {"GPU", "NIC", "way", "compared", "level", "receive", "send", "relay"}};
  for (const auto& pair : decision.pairs)
    rows.push_back({devices[pair.gpu].name, devices[pair.nic].name,
                    std::string(to_string(pair.wired)), std::string(to_string(pair.distance)),
                    std::string(to_string(pair.level)), yes(pair.receive), yes(pair.send),
                    pair.relay ? devices[*pair.relay].name : "-"});
  std::string out =
      fmt::format("{}, NCCL {}\n\n{}", topology.hosts[host].name, decision.version, table(rows));
  bool any = false;
  for (std::size_t g = 0; g < decision.gpus.size(); ++g) {
    if (decision.nics_of_gpu[g].empty()) continue;
    std::vector<std::string> names;
    for (const std::size_t nic : decision.nics_of_gpu[g]) names.push_back(devices[nic].name);
    out += fmt::format("{}  {} takes {}\n", any ? "" : "\n", devices[decision.gpus[g]].name,
                       fmt::join(names, ", "));
    any = true;
  }
  std::vector<std::string> reasons;
  for (const auto& pair : decision.pairs)
    if (std::find(reasons.begin(), reasons.end(), pair.reason) == reasons.end())
      reasons.push_back(pair.reason);
  out += "\n";
  for (const std::string& reason : reasons)
    out += std::string(2, ' ') + wrapped(reason, 2, 78) + "\n";
  for (const std::string& note : decision.notes)
    out += std::string(2, ' ') + wrapped(note, 2, 78) + "\n";
  bool lines = false;
  for (const auto& pair : decision.pairs) {
    if (pair.log_line.empty()) continue;
    out += fmt::format("{}  {}\n", lines ? "" : "\nIts log with NCCL_DEBUG=INFO:\n", pair.log_line);
    lines = true;
  }
  if (!lines)
    out += "\nThis version prints no line for each pair; channels say GDRDMA at their end.\n";
  return out;
}

json::Value to_json(const Topology& topology, std::size_t host, const nccl::Decision& decision) {
  const auto& devices = topology.hosts[host].devices;
  json::Array pairs;
  for (const auto& pair : decision.pairs) {
    json::Value item = json::Object{{"gpu", devices[pair.gpu].name},
                                    {"nic", devices[pair.nic].name},
                                    {"wired", std::string(to_string(pair.wired))},
                                    {"distance", std::string(to_string(pair.distance))},
                                    {"level", std::string(to_string(pair.level))},
                                    {"receive", pair.receive}};
    item.set("send", pair.send ? json::Value(*pair.send) : json::Value(nullptr));
    if (pair.relay) item.set("relay", devices[*pair.relay].name);
    item.set("reason", pair.reason);
    if (!pair.log_line.empty()) item.set("log", pair.log_line);
    pairs.push_back(std::move(item));
  }
  json::Array gpus;
  for (std::size_t g = 0; g < decision.gpus.size(); ++g) {
    json::Array nics;
    for (const std::size_t nic : decision.nics_of_gpu[g]) nics.emplace_back(devices[nic].name);
    gpus.emplace_back(
        json::Object{{"gpu", devices[decision.gpus[g]].name}, {"nics", std::move(nics)}});
  }
  json::Array notes;
  for (const std::string& note : decision.notes) notes.emplace_back(note);
  return json::Object{{"host", topology.hosts[host].name},
                      {"version", decision.version},
                      {"pairs", std::move(pairs)},
                      {"nics", std::move(gpus)},
                      {"notes", std::move(notes)}};
}

std::string to_text(const nccl::Log& log) {
  std::string out =
      log.version.empty() ? "NCCL of an unknown version\n" : fmt::format("NCCL {}\n", log.version);
  for (const std::string& setting : log.settings) out += "  " + setting + "\n";
  for (const auto& line : log.lines)
    out += fmt::format("\n{}: {}\n    {}\n", line.line, line.text, wrapped(line.meaning, 4, 76));
  if (log.lines.empty())
    out +=
        "\nNo line in it is about GPUDirect RDMA: NCCL_DEBUG=INFO and "
        "NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH show them.\n";
  return out;
}

json::Value to_json(const nccl::Log& log) {
  json::Array lines;
  for (const auto& line : log.lines)
    lines.emplace_back(json::Object{
        {"line", json::Value(static_cast<std::int64_t>(line.line))},
        {"text", line.text},
        {"meaning", line.meaning},
        {"gdr", line.gdr ? json::Value(*line.gdr) : json::Value(nullptr)},
        {"distance", line.distance ? json::Value(*line.distance) : json::Value(nullptr)}});
  return json::Object{{"format", 1}, {"version", log.version}, {"lines", std::move(lines)}};
}

std::string log_comparison(const nccl::Log& log, const Topology& topology, std::size_t host,
                           const nccl::Decision& decision) {
  std::size_t same = 0;
  std::vector<std::string> other;
  const auto& devices = topology.hosts[host].devices;
  for (const auto& line : log.lines) {
    if (!line.gdr || line.gpu.empty()) continue;
    for (const auto& pair : decision.pairs) {
      std::string bus;
      for (const char c : devices[pair.gpu].address)
        if (c != ':' && c != '.') bus += c;
      bus.erase(0, std::min(bus.find_first_not_of('0'), bus.size()));
      const bool gpu = line.gpu == bus || line.gpu == std::to_string(pair.rank) ||
                       line.gpu.starts_with(std::to_string(pair.gpu_dev) + "[");
      const bool net = line.net == std::to_string(pair.net) ||
                       line.net == devices[pair.nic].rdma_device ||
                       line.net.ends_with("-" + std::to_string(pair.net));
      if (!gpu || !net) continue;
      const std::string given(to_string(pair.distance));
      if (pair.receive == *line.gdr && line.distance && !pair.number && *line.distance != given)
        other.push_back(fmt::format(
            "line {}: {} with {} is at {} in the log and at {} by the topology", line.line,
            devices[pair.gpu].name, devices[pair.nic].name, *line.distance, given));
      else if (pair.receive == *line.gdr) ++same;
      else
        other.push_back(
            fmt::format("line {}: {} with {} is {} in the log and would be {} by the topology",
                        line.line, devices[pair.gpu].name, devices[pair.nic].name,
                        *line.gdr ? "on" : "off", pair.receive ? "on" : "off"));
    }
  }
  std::string out = fmt::format("\nCompared with {}: as decided {} of {} lines that name a pair\n",
                                topology.name, same, same + other.size());
  for (const std::string& one : other) out += "  " + wrapped(one, 4, 78) + "\n";
  return out;
}

}  // namespace gdr::report
