#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/report/check_text.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"
#include "src/verdict/verdict_json.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::vector<std::string> settings;
  std::string format = "text";
};

int run(const Options& options, const ModelLibrary& models) {
  const std::vector<Setting> settings = parse_settings(options.settings);
  const Topology topology = load_input(options.topology, settings, &models);
  const Verdict verdict = judge(Graph(topology), models);
  write_file("-", options.format == "json" ? json::dump(to_json(verdict, topology.name))
                                           : check_text(topology, verdict));
  return std::any_of(verdict.findings.begin(), verdict.findings.end(),
                     [](const Finding& finding) { return finding.severity == Severity::error; })
             ? 1
             : 0;
}

}  // namespace

void add_check(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "check", "Say which pairs of a topology can do GPUDirect, which cannot, why, and what to do");
  auto options = std::make_shared<Options>();
  command
      ->add_option("topology", options->topology,
                   "topology file, or a listing that gdr import reads; - is standard input")
      ->required();
  command
      ->add_option("--set", options->settings,
                   "KEY=VALUE: edit the topology first, as in iommu=translate or h0/gpu0.acs=RR+CR")
      ->allow_extra_args(false);
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  gdr check topologies/servers/dgx-a100.json --set acs=on\n"
      "  nvidia-smi topo -m | gdr check -\n"
      "\n"
      "Exit codes: 0 nothing is known to fail, 1 a GPU's best NIC is blocked or slow,\n"
      "2 wrong input.");
  command->callback([options, &context] { context.exit_code = run(*options, *context.models); });
}

}  // namespace gdr::cli
