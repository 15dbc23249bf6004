#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/import/machine.hpp"
#include "src/nccl/decision.hpp"
#include "src/nccl/history.hpp"
#include "src/nccl/log.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::string version;
  std::vector<std::string> environment;
  std::vector<std::string> settings;
  std::string log;
  std::string format = "text";
};

nccl::Environment environment_of(const Options& options) {
  nccl::Environment all;
  for (const std::string& item : options.environment) {
    const bool pair = item.find('=') != std::string::npos;
    for (const auto& [name, value] :
         nccl::parse_environment(pair ? item : read_file(item), pair ? "--env" : item))
      all[name] = value;
  }
  return all;
}

std::string yes(std::optional<bool> answer) { return !answer ? "?" : *answer ? "yes" : "no"; }

std::string text_of(const Topology& topology, std::size_t host, const nccl::Decision& decision) {
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

json::Value json_of(const Topology& topology, std::size_t host, const nccl::Decision& decision) {
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

/// Whether the log's use of GPUDirect RDMA is what the decision says: by the lines of pairs of one
/// rank and net.
std::string compared(const nccl::Log& log, const Topology& topology, std::size_t host,
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

std::size_t only_host_with_gpus(const Topology& topology) {
  for (std::size_t h = 0; h < topology.hosts.size(); ++h)
    for (const Device& device : topology.hosts[h].devices)
      if (device.kind == DeviceKind::gpu) return h;
  throw InputError(fmt::format("{}: no GPU in it", topology.name));
}

void read_log(const Options& options, const ModelLibrary& models) {
  const NamedText input = read_input(options.log);
  const nccl::Log log = nccl::read_log(input.text, input.name, options.version);
  json::Array lines;
  std::string out =
      log.version.empty() ? "NCCL of an unknown version\n" : fmt::format("NCCL {}\n", log.version);
  for (const std::string& setting : log.settings) out += "  " + setting + "\n";
  for (const auto& line : log.lines) {
    out += fmt::format("\n{}: {}\n    {}\n", line.line, line.text, wrapped(line.meaning, 4, 76));
    lines.emplace_back(json::Object{
        {"line", json::Value(static_cast<std::int64_t>(line.line))},
        {"text", line.text},
        {"meaning", line.meaning},
        {"gdr", line.gdr ? json::Value(*line.gdr) : json::Value(nullptr)},
        {"distance", line.distance ? json::Value(*line.distance) : json::Value(nullptr)}});
  }
  if (log.lines.empty())
    out +=
        "\nNo line in it is about GPUDirect RDMA: NCCL_DEBUG=INFO and "
        "NCCL_DEBUG_SUBSYS=INIT,NET,GRAPH show them.\n";
  if (options.format == "json") {
    write_file("-", json::dump(json::Object{
                        {"format", 1}, {"version", log.version}, {"lines", std::move(lines)}}));
    return;
  }
  if (!options.topology.empty() && !log.version.empty() && !nccl::known_version(log.version)) {
    out += "\n" +
           wrapped(fmt::format(
                       "Not compared with {}: what NCCL {} decides is not known (known are {}).",
                       options.topology, log.version, nccl::known_versions),
                   2) +
           "\n";
  } else if (!options.topology.empty() && !log.version.empty()) {
    const Topology topology =
        load_input(options.topology, parse_settings(options.settings), &models);
    const std::size_t host = only_host_with_gpus(topology);
    out += compared(log, topology, host,
                    nccl::decide(topology, host, models, log.version, environment_of(options)));
  }
  write_file("-", out);
}

void run(const Options& options, const ModelLibrary& models) {
  if (!options.log.empty()) {
    read_log(options, models);
    return;
  }
  if (options.topology.empty()) throw InputError("nccl: a topology is missing, or --log FILE");
  const Topology topology = load_input(options.topology, parse_settings(options.settings), &models);
  std::string out;
  json::Array hosts;
  const auto groups = topology.hosts.size();
  for (std::size_t h = 0; h < groups; ++h) {
    const auto& devices = topology.hosts[h].devices;
    if (std::none_of(devices.begin(), devices.end(),
                     [](const Device& device) { return device.kind == DeviceKind::gpu; }))
      continue;
    const std::string& own = topology.hosts[h].software.nccl_version;
    const std::string version = !options.version.empty() ? options.version
                                : !own.empty()           ? own
                                                         : nccl::Settings{}.version;
    const nccl::Decision decision =
        nccl::decide(topology, h, models, version, environment_of(options));
    out += (out.empty() ? "" : "\n") + text_of(topology, h, decision);
    hosts.push_back(json_of(topology, h, decision));
  }
  if (hosts.empty()) throw InputError(fmt::format("{}: no GPU in it", topology.name));
  write_file("-", options.format == "json"
                      ? json::dump(json::Object{{"format", 1}, {"hosts", std::move(hosts)}})
                      : out);
}

}  // namespace

void add_nccl(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "nccl", "What NCCL of a version decides for each GPU and NIC, or what its log says");
  auto options = std::make_shared<Options>();
  command->add_option("topology", options->topology,
                      "topology file or listing; with --log: to compare the log with");
  command->add_option("--version", options->version,
                      "NCCL's version, 2.3 to 2.30; without it that of the topology, else 2.28.9");
  command
      ->add_option("--env", options->environment,
                   "NAME=VALUE as NCCL reads them, or a file of such lines; several times")
      ->allow_extra_args(false);
  command->add_option("--set", options->settings, "KEY=VALUE: edit the topology first")
      ->allow_extra_args(false);
  command->add_option(
      "--log", options->log,
      "explain the lines about GPUDirect RDMA of an NCCL_DEBUG=INFO log; - is standard input");
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  gdr nccl machine.json --version 2.18 --env NCCL_NET_GDR_LEVEL=PHB\n"
      "  gdr nccl --log nccl.log --version 2.18.6");
  command->callback([options, command, &context] {
    if (command->get_option("--version")->count() > 0 && options->version.empty())
      throw InputError("--version is empty: write NCCL's version, as in 2.18.6, or leave it out");
    run(*options, *context.models);
  });
}

}  // namespace gdr::cli
