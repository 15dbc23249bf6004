#include <CLI/CLI.hpp>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/report/compare_report.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::vector<std::string> topologies;
  std::vector<std::string> settings;
  std::string format = "text";
};

void run(const Options& options, const ModelLibrary& models) {
  const auto settings = parse_settings(options.settings);
  sim::Simulator simulator;
  std::vector<study::Column> columns;
  for (const std::string& path : options.topologies)
    columns.push_back(study::column_of(simulator, load_input(path, settings, &models), models));
  write_file("-", options.format == "json"   ? json::dump(report::to_json(columns))
                  : options.format == "html" ? report::to_html(columns)
                                             : report::to_text(columns));
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "compare",
      "Put servers side by side: pairs by verdict, bandwidth with all GPUs at once, latency");
  auto options = std::make_shared<Options>();
  command
      ->add_option("topologies", options->topologies,
                   "topology files or listings, one for each server")
      ->required();
  command->add_option("--set", options->settings, "KEY=VALUE: edit each topology first")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "text, json or html")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr compare topologies/servers/dgx-a100.json topologies/servers/dgx-h100.json");
  command->callback([options, &context] { run(*options, *context.models); });
}

}  // namespace gdr::cli
