#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/input.hpp"
#include "src/common/file.hpp"
#include "src/import/machine.hpp"
#include "src/report/output.hpp"
#include "src/study/fit.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::vector<std::string> measured;
  std::vector<std::string> settings;
  measured::Ends ends;
  std::string format = "text";
};

std::string figure_text(const measured::Figure& figure) {
  const std::string ends =
      figure.gpus ? fmt::format(" GPU {} to {}", figure.gpus->first, figure.gpus->second) : "";
  const std::string peer = !figure.peer_to_peer   ? ""
                           : *figure.peer_to_peer ? ", P2P on"
                                                  : ", P2P off";
  return fmt::format("{}{}, {}{}{}: {}", figure.tool, ends, to_string(figure.size),
                     figure.bidirectional ? ", both directions" : "", peer,
                     figure.bandwidth
                         ? fmt::format("{:.4g} GB/s", figure.bandwidth->gigabytes_per_second())
                         : fmt::format("{:.4g} us", figure.latency->us()));
}

std::string predicted_text(const measured::Fit& fit, const measured::Candidate& candidate) {
  return fit.figure.bandwidth ? fmt::format("{:.4g} GB/s", candidate.predicted * 1e-9)
                              : fmt::format("{:.4g} us", candidate.predicted * 1e6);
}

std::string text_of(const std::vector<measured::Fit>& fits) {
  std::string out;
  for (const measured::Fit& fit : fits) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", wrapped(figure_text(fit.figure), 2));
    if (!fit.from.empty()) out += fmt::format("  {} to {}\n", fit.from, fit.to);
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < std::min<std::size_t>(fit.candidates.size(), 5); ++i) {
      const auto& c = fit.candidates[i];
      rows.push_back(
          {"    " + c.path, predicted_text(fit, c), fmt::format("{:+.0f} %", c.deviation * 100)});
      if (!c.condition.empty()) rows.back().front() += ", " + c.condition;
      constexpr std::size_t widest = 58;
      if (rows.back().front().size() > widest)
        rows.back().front().replace(widest - 3, std::string::npos, "...");
    }
    if (!rows.empty()) out += table(rows);
    out +=
        "  " + wrapped(fmt::format("{} ({})", fit.verdict, to_string(fit.sureness)), 2, 78) + "\n";
    out += "  " + wrapped("Next: " + fit.next, 2, 78) + "\n";
  }
  return out;
}

json::Value json_of(const std::vector<measured::Fit>& fits) {
  json::Array list;
  for (const measured::Fit& fit : fits) {
    json::Value item =
        json::Object{{"tool", fit.figure.tool},
                     {"line", json::Value(static_cast<std::int64_t>(fit.figure.line))},
                     {"size_bytes", json::Value(fit.figure.size.count)}};
    if (fit.figure.bandwidth)
      item.set("measured_bytes_per_second", rounded(fit.figure.bandwidth->bytes_per_second));
    else item.set("measured_seconds", rounded(fit.figure.latency->seconds));
    item.set("bidirectional", fit.figure.bidirectional);
    if (!fit.from.empty()) item.set("from", fit.from);
    if (!fit.to.empty()) item.set("to", fit.to);
    json::Array candidates;
    for (const auto& c : fit.candidates) {
      json::Value one = json::Object{{"path", c.path}, {"condition", c.condition}};
      one.set(fit.figure.bandwidth ? "predicted_bytes_per_second" : "predicted_seconds",
              rounded(c.predicted));
      one.set("deviation", rounded(c.deviation));
      candidates.push_back(std::move(one));
    }
    item.set("candidates", std::move(candidates));
    item.set("sureness", std::string(to_string(fit.sureness)));
    item.set("verdict", fit.verdict);
    item.set("next", fit.next);
    list.push_back(std::move(item));
  }
  return json::Object{{"format", 1}, {"figures", std::move(list)}};
}

/// The answer is no when a figure fits a detour, a narrow link or nothing.
int run(const Options& options, const ModelLibrary& models) {
  const Topology topology = load_input(options.topology, parse_settings(options.settings), &models);
  std::vector<measured::Figure> figures;
  for (const std::string& file : options.measured) {
    const NamedText input = read_input(file);
    const auto more = measured::read_figures(input.text, input.name);
    figures.insert(figures.end(), more.begin(), more.end());
  }
  sim::Simulator simulator;
  const std::vector<measured::Fit> fits =
      measured::fit(simulator, topology, models, figures, options.ends);
  write_file("-", options.format == "json" ? json::dump(json_of(fits)) : text_of(fits));
  return std::any_of(fits.begin(), fits.end(), measured::is_downgrade) ? 1 : 0;
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
