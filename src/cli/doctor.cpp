#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "src/cli/commands.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/doctor/doctor.hpp"
#include "src/doctor/gather.hpp"
#include "src/report/output.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::vector<std::string> files;
  std::string format = "text";
};

std::string text_of(const doctor::Report& report) {
  std::string out;
  for (const doctor::Elsewhere& one : report.elsewhere)
    out += wrapped(fmt::format("{}: {}. {} reads it; the checklist knows only errors in it.",
                               one.input, one.what, one.command),
                   4) +
           "\n\n";
  const auto section = [&](doctor::State state, std::string_view title) {
    bool any = false;
    for (const doctor::Check& check : report.checks) {
      if (check.state != state) continue;
      if (!any) out += fmt::format("{}\n", title);
      any = true;
      const std::string kind =
          state == doctor::State::problem ? fmt::format("{}: ", to_string(check.severity)) : "";
      out += fmt::format("  {}{}\n", kind, check.rule);
      if (!check.where.empty())
        out += std::string(4, ' ') + wrapped("at " + check.where, 4, 76) + "\n";
      out += std::string(4, ' ') + wrapped(check.evidence, 4, 76) + "\n";
      if (!check.remedy.empty())
        out += std::string(4, ' ') + wrapped("Remedy: " + check.remedy, 4, 76) + "\n";
    }
    if (any) out += "\n";
  };
  section(doctor::State::problem, "Problems");
  section(doctor::State::unknown, "Not known");
  section(doctor::State::fine, "Fine");
  for (const auto& [what, why] : report.missing)
    out += wrapped(fmt::format("Not read: {}: {}", what, why), 4) + "\n";
  out +=
      report.topology ? "" : "No GPU or NIC was shown: links, ACS and distances are not judged.\n";
  while (out.ends_with("\n\n")) out.pop_back();
  return out;
}

json::Value json_of(const doctor::Report& report) {
  json::Array checks;
  for (const doctor::Check& check : report.checks) {
    json::Value item =
        json::Object{{"rule", check.rule}, {"state", std::string(to_string(check.state))}};
    if (check.state == doctor::State::problem)
      item.set("severity", std::string(to_string(check.severity)));
    if (!check.where.empty()) item.set("where", check.where);
    item.set("evidence", check.evidence);
    if (!check.remedy.empty()) item.set("remedy", check.remedy);
    checks.push_back(std::move(item));
  }
  json::Object missing;
  for (const auto& [what, why] : report.missing) missing.emplace_back(what, why);
  json::Array elsewhere;
  for (const doctor::Elsewhere& one : report.elsewhere)
    elsewhere.emplace_back(
        json::Object{{"input", one.input}, {"what", one.what}, {"command", one.command}});
  return json::Object{{"format", 1},
                      {"checks", std::move(checks)},
                      {"not_read", std::move(missing)},
                      {"elsewhere", std::move(elsewhere)}};
}

int run(const Options& options, const ModelLibrary& models) {
  std::vector<NamedText> inputs;
  for (const std::string& file : options.files) inputs.push_back(read_input(file));
  if (inputs.empty())
    inputs.push_back({json::dump(observed::to_json(doctor::gather("/", false))), "this machine"});
  const doctor::Report report = doctor::examine(inputs, models);
  write_file("-", options.format == "json" ? json::dump(json_of(report)) : text_of(report));
  return std::any_of(report.checks.begin(), report.checks.end(),
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
