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
#include "src/report/nccl_report.hpp"
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

std::size_t only_host_with_gpus(const Topology& topology) {
  for (std::size_t h = 0; h < topology.hosts.size(); ++h)
    for (const Device& device : topology.hosts[h].devices)
      if (device.kind == DeviceKind::gpu) return h;
  throw InputError(fmt::format("{}: no GPU in it", topology.name));
}

void read_log(const Options& options, const ModelLibrary& models) {
  const NamedText input = read_input(options.log);
  const nccl::Log log = nccl::read_log(input.text, input.name, options.version);
  if (options.format == "json") {
    write_file("-", json::dump(report::to_json(log)));
    return;
  }
  std::string out = report::to_text(log);
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
    out +=
        log_comparison(log, topology, host,
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
    out += (out.empty() ? "" : "\n") + report::to_text(topology, h, decision);
    hosts.push_back(report::to_json(topology, h, decision));
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
                   "NAME=VALUE as NCCL reads them, or a file of such lines; may be given again")
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
