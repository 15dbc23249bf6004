#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/common/file.hpp"
#include "src/doctor/doctor.hpp"
#include "src/doctor/gather.hpp"
#include "src/report/doctor_report.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string format = "text";
};

int run(const Options& options, const ModelLibrary& models) {
  std::vector<NamedText> inputs;
  for (const std::string& file : options.files) inputs.push_back(read_input(file));
  if (inputs.empty())
    inputs.push_back({json::dump(observed::to_json(doctor::gather("/", false))), "this machine"});
  const doctor::Report checked = doctor::examine(inputs, models);
  write_file("-", options.format == "json" ? json::dump(report::to_json(checked))
                                           : report::to_text(checked));
  return std::any_of(checked.checks.begin(), checked.checks.end(),
                     [](const doctor::Check& check) {
                       return check.state == doctor::State::problem &&
                              check.severity == Severity::error;
                     })
             ? 1
             : 0;
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "doctor",
      "Go through the checklist for GPUDirect RDMA: of this machine, a capture, or what you paste");
  auto options = std::make_shared<Options>();
  command->add_option(
      "files", options->files,
      "what gdr capture wrote, listings, logs, - for standard input; none: this machine");
  command->add_option("--format", options->format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  gdr doctor\n"
      "  (lsmod; uname -r; dmesg) | gdr doctor -\n"
      "\n"
      "Exit codes: 0 no error was found, 1 one was, 2 wrong input.");
  command->callback([options, &context] { context.exit_code = run(*options, *context.models); });
}

void add_capture(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "capture", "Gather what the rules need from this machine into a file that can be mailed");
  auto output = std::make_shared<std::string>("-");
  auto root = std::make_shared<std::string>("/");
  command->add_option("-o,--output", *output, "file to write; - is standard output")
      ->capture_default_str();
  command->add_option("--root", *root, "read /sys and /proc of this folder and run no commands")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  sudo gdr capture -o machine.capture.json && gdr doctor machine.capture.json\n"
      "\n"
      "Names, serial numbers, MAC and IP addresses and GUIDs are replaced.\n"
      "Without root, ACS bits and other capabilities stay unknown; the file says so.");
  command->callback([output, root] {
    const observed::Capture capture = doctor::gather(*root, true);
    write_file(*output, json::dump(observed::to_json(capture)));
    for (const auto& [what, why] : capture.missing)
      std::fprintf(stderr, "gdr: not read: %s: %s\n", what.c_str(), why.c_str());
  });
  (void)context;
}

}  // namespace gdr::cli
