#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/report/show_dot.hpp"
#include "src/report/show_text.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::vector<std::string> settings;
  std::string format = "text";
  std::string output = "-";
};

void run(const Options& options, const ModelLibrary* models) {
  const std::vector<Setting> settings = parse_settings(options.settings);
  const Topology topology = load_input(options.topology, settings, models);
  write_file(options.output, options.format == "dot" ? show_dot(topology) : show_text(topology));
}

}  // namespace

void add_show(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("show", "Print a topology as a tree, or as a picture for Graphviz");
  auto options = std::make_shared<Options>();
  command->add_option("topology", options->topology, "topology file")->required();
  command
      ->add_option("--set", options->settings,
                   "KEY=VALUE: edit the topology first, as in h0/nic0.link=gen4x8")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "text or dot")
      ->check(CLI::IsMember({"text", "dot"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "file to write; - is standard output")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  gdr show topologies/servers/dgx-a100.json --set acs=on\n"
      "  gdr show topologies/servers/dgx-a100.json --format dot | dot -Tpng -o a100.png");
  command->callback([options, &context] { run(*options, context.models); });
}

}  // namespace gdr::cli
