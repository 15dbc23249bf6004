#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/cli/progress.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/report/validate_report.hpp"
#include "src/study/validate.hpp"

namespace gdr::cli {
namespace {

// What validation records must hold for exit code 0.
constexpr double most_median = 0.10;
constexpr double most_percentile90 = 0.30;

struct Options {
  std::vector<std::string> paths;
  std::string format = "text";
  bool no_ranges = false;
};

std::vector<study::CaseResult> run_cases(sim::Simulator& simulator, const ModelLibrary& models,
                                         const std::vector<study::PublishedCase>& cases,
                                         bool ranges) {
  Progress progress(ranges ? "running published cases and their ranges" : "running published cases",
                    cases.size());
  return study::run_published(simulator, models, cases, ranges, [&] { progress.step(); });
}

int run(const Options& options, const ModelLibrary& models) {
  const std::filesystem::path data = std::filesystem::path(models.folder()).parent_path();
  const std::vector<std::string> paths =
      options.paths.empty() ? std::vector<std::string>{models.folder() + "/published"}
                            : options.paths;
  const study::PublishedCases all = study::load_published(paths, data / "topologies");
  if (all.cases.empty())
    throw InputError(
        "no case in " +
        (options.paths.empty() ? models.folder() + "/published" : options.paths.front()) +
        "; give a file or folder of cases");
  sim::Simulator simulator;
  const auto results = run_cases(simulator, models, all.cases, !options.no_ranges);
  report::Validation run{{}, {}, all, !options.no_ranges};
  for (const study::CaseResult& result : results)
    (result.published->calibration ? run.calibration : run.validation).push_back(&result);
  write_file("-", options.format == "json"   ? json::dump(report::to_json(run))
                  : options.format == "html" ? report::to_html(run)
                                             : report::to_text(run));
  const study::Errors errors = study::errors_of(run.validation);
  return errors.median <= most_median && errors.percentile90 <= most_percentile90 ? 0 : 1;
}

}  // namespace

void add_validate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "validate", "Run published measurements and compare: predicted, measured, error");
  auto options = std::make_shared<Options>();
  command->add_option("cases", options->paths,
                      "files or folders of cases (default: those that come with the models)");
  command->add_option("--format", options->format, "how to print")
      ->check(CLI::IsMember({"text", "json", "html"}))
      ->capture_default_str();
  command->add_flag("--no-ranges", options->no_ranges,
                    "leave out the ranges, which take most of the time");
  command->footer(
      "Example:\n"
      "  gdr validate --format html > validation.html\n"
      "\n"
      "Exit codes: 0 the validation cases' |error| is at most 10 % in the median and\n"
      "30 % at the 90th percentile, 1 it is not, 2 wrong input.");
  command->callback([options, &context] { context.exit_code = run(*options, *context.models); });
}

}  // namespace gdr::cli
