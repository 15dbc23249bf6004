#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/import/machine.hpp"
#include "src/import/nccl_guest.hpp"
#include "src/nccl/xml/write.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string format;
  std::string topology;
  std::string host;
  std::vector<std::string> settings;
  std::string guest;
  std::string output = "-";
};

/// The named host; without a name the only one.
std::size_t find_host(const Topology& topology, const Options& options) {
  std::string names;
  for (std::size_t i = 0; i < topology.hosts.size(); ++i) {
    if (topology.hosts[i].name == options.host ||
        (options.host.empty() && topology.hosts.size() == 1))
      return i;
    names += (names.empty() ? "" : ", ") + topology.hosts[i].name;
  }
  if (options.host.empty())
    throw InputError(
        fmt::format("{}: has several hosts; choose one with --host: {}", options.topology, names));
  throw InputError(
      fmt::format("{}: has no host \"{}\"; there are: {}", options.topology, options.host, names));
}

void run(const Options& options, const ModelLibrary* models) {
  if (options.format != "nccl-xml")
    throw InputError(
        fmt::format("export: unknown format \"{}\"; there is: nccl-xml", options.format));
  const std::vector<Setting> settings = parse_settings(options.settings);
  const Topology topology = load_input(options.topology, settings, models);
  const std::size_t host = find_host(topology, options);
  for (const Device& device : topology.hosts[host].devices)
    if (device.place_known == false)
      throw InputError(
          fmt::format("{}: it is not known what {} hangs below: a table of distances shows no "
                      "switches, and NCCL would take a file without them for "
                      "a machine without them; import a tree as well (lspci -tv)",
                      options.topology, device.name));
  if (options.guest.empty()) {
    write_file(options.output, export_nccl_xml(topology, host, models));
    return;
  }
  const NamedText map = read_input(options.guest);
  write_file(options.output,
             export_guest_xml(topology, host, parse_guest_map(map.text, map.name), models));
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("export", "Write a host of a topology in the form of another tool");
  auto options = std::make_shared<Options>();
  command->add_option("format", options->format, "nccl-xml: a file for NCCL_TOPO_FILE")->required();
  command->add_option("topology", options->topology, "topology file")->required();
  command->add_option("--host", options->host, "host to write, when the topology has several");
  command
      ->add_option("--set", options->settings,
                   "KEY=VALUE: edit the topology first, as in h0/nic0.link=gen4x8")
      ->allow_extra_args(false);
  command->add_option("--guest", options->guest,
                      "file of lines HOST-ADDRESS GUEST-ADDRESS: write for a virtual machine that "
                      "has these devices");
  command->add_option("-o,--output", options->output, "file to write; - is standard output")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr export nccl-xml topologies/servers/dgx-a100.json --host h0 -o system.xml\n"
      "  gdr export nccl-xml host.json --guest passed-through.txt -o /etc/nccl/topo.xml");
  command->callback([options, &context] { run(*options, context.models); });
}

}  // namespace gdr::cli
