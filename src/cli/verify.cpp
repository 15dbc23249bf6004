#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/import/machine.hpp"
#include "src/report/verify_report.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::vector<std::string> measured;
  std::vector<std::string> settings;
  study::Ends ends;
  std::string format = "text";
};

/// The answer is no if a figure fits a detour, a narrow link or nothing.
int run(const Options& options, const ModelLibrary& models) {
  const Topology topology = load_input(options.topology, parse_settings(options.settings), &models);
  std::vector<study::Figure> figures;
  for (const std::string& file : options.measured) {
    const NamedText input = read_input(file);
    const auto more = study::read_figures(input.text, input.name);
    figures.insert(figures.end(), more.begin(), more.end());
  }
  sim::Simulator simulator;
  const std::vector<study::Fit> fits =
      study::fit(simulator, topology, models, figures, options.ends);
  write_file("-",
             options.format == "json" ? json::dump(report::to_json(fits)) : report::to_text(fits));
  return std::any_of(fits.begin(), fits.end(), study::is_downgrade) ? 1 : 0;
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "verify", "Say which path a measured bandwidth or latency fits, and what to look at next");
  auto options = std::make_shared<Options>();
  command->add_option("topology", options->topology, "topology file or listing")->required();
  command
      ->add_option("--measured", options->measured,
                   "output of ib_write_bw and its kind, nccl-tests, OSU, nvbandwidth, "
                   "p2pBandwidthLatencyTest, gdsio; - is standard input")
      ->required();
  command->add_option("--from", options->ends.from,
                      "HOST/GPU that sends (gdsio: also HOST/DRIVE), where the tool does not say; "
                      "gpu0 of the first host");
  command->add_option("--to", options->ends.to, "HOST/GPU that receives; gpu0 of the second host");
  command->add_option("--set", options->settings, "KEY=VALUE: edit the topology first")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr verify machine.json --measured ib_write_bw.txt --from h0/gpu0 --to h1/gpu0\n"
      "\n"
      "Exit codes: 0 as the topology gives, 1 a figure fits a detour or a narrow link,\n"
      "2 wrong input.");
  command->callback([options, &context] { context.exit_code = run(*options, *context.models); });
}

}  // namespace gdr::cli
