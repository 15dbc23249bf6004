#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "emu/process/shell.hpp"
#include "emu/run/native.hpp"
#include "emu/run/run_folder.hpp"
#include "emu/run/run_once.hpp"
#include "src/cli/commands.hpp"
#include "src/cli/emulate_options.hpp"
#include "src/common/error.hpp"
#include "src/common/units.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::cli {
namespace {

int native(const EmulateOptions& options, emu::Signals& signals) {
  const Topology topology = load_topology(options.topology, parse_settings(options.settings));
  const emu::NativePlan plan = emu::plan_native(topology);
  const auto commands = emu::commands_of(options.commands, {topology.hosts.front().name});
  const auto missing = emu::missing_for_native(emu::look_at_machine());
  if (!missing.empty()) throw InputError(fmt::format("--native: {}", fmt::join(missing, "; ")));
  const int exit_code =
      emu::run_native(plan, *commands.front(), parse_duration(options.timeout), signals);
  if (exit_code == emu::exit_timeout)
    say(fmt::format("not finished after {} (--timeout): stopped", options.timeout));
  return exit_code;
}

int emulate(const EmulateOptions& options, const ModelLibrary& models, emu::Signals& signals) {
  EmulationInput input(options, models);
  const Duration timeout = parse_duration(options.timeout);
  std::vector<std::optional<std::string>> commands;
  if (!options.dry_run) commands = emu::commands_of(options.commands, input.hosts());
  input.prepare(signals);
  if (options.dry_run) {
    for (const emu::GuestPlan& guest : input.plan("RUN").guests)
      fmt::print("{}\n", emu::shell_line(guest.qemu));
    return 0;
  }
  const emu::RunFolder folder;
  const emu::SessionPlan plan = input.plan(folder.path());
  const auto run = [&] {
    return emu::run_guests(plan, commands, input.folder(), timeout, signals, emu::print_line);
  };
  emu::ExitReport report = run();
  if (report.before_commands) {
    say(report.error);
    say("starting the guests once more");
    report = run();
  }
  if (!report.error.empty()) say(report.error);
  report_traffic(options, to_json(report.counters));
  return report.exit_code;
}

using Run = std::function<int(emu::Signals&)>;

/// The exit code of `run`, or 128 + N when signal N came at any moment from its start until all
/// that it started has ended, even after its last check for signals.
int interruptible(const Run& run) {
  emu::Signals signals;
  try {
    const int exit_code = run(signals);
    signals.take();
    return exit_code;
  } catch (const emu::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  }
}

int run_plain(const EmulateOptions& options, const ModelLibrary& models) {
  if (options.probe) return emulate_probe();
  if (options.topology.empty())
    throw InputError("topology is required; see \"gdr emulate --help\"");
  return interruptible([&](emu::Signals& signals) {
    if (options.compare) return emulate_compare(options, models, signals);
    return options.native ? native(options, signals) : emulate(options, models, signals);
  });
}

using Options = std::shared_ptr<EmulateOptions>;

/// How guests are started.
void add_guest_options(CLI::App& command, const Options& options) {
  command
      .add_option("--set", options->settings,
                  "KEY=VALUE: edit the topology first, as in iommu=translate or h0/gpu0.acs=RR+CR")
      ->allow_extra_args(false);
  command
      .add_option("--accelerator", options->accelerator,
                  "auto (KVM where it can be used), kvm or tcg")
      ->check(CLI::IsMember({"auto", "kvm", "tcg"}))
      ->capture_default_str();
  command
      .add_option(
          "--gpu-files", options->gpu_files,
          "existing folder for the files behind GPU memory, HOST-GPU.memory, which are kept")
      ->check(CLI::ExistingDirectory);
  command.add_option("--kernel", options->kernel, "image of a kernel of yours, with --modules");
  command.add_option("--modules", options->modules, "its lib/modules/RELEASE");
  command
      .add_option("--fault", options->faults,
                  "what links do, as in h0/nic0:loss=1%,reorder=1%; may be given again")
      ->allow_extra_args(false);
  command
      .add_option("--refuse-registration", options->refusals,
                  "HOST/gpuN-nicM[,after=COUNT][,above=SIZE]: registering that GPU's memory on "
                  "that NIC fails (EFAULT)")
      ->allow_extra_args(false);
  command.add_option("--seed", options->seed, "seed of the random choices of --fault")
      ->capture_default_str();
  command.add_option("--pcap", options->pcap, "capture file: what NICs send, before faults");
}

/// The commands to run.
void add_command_options(CLI::App& command, const Options& options, const char* timeout) {
  command.add_option("command", options->commands.command,
                     "-- COMMAND ARGUMENT...: run on every host, as root of the guest");
  command
      .add_option("--on", options->commands.on,
                  "HOST 'SHELL COMMAND': for this host; may be given again")
      ->type_name("HOST COMMAND")
      ->allow_extra_args(false);
  command.add_option("--timeout", options->timeout, timeout)->capture_default_str();
  command.add_flag("--traffic", options->traffic,
                   "print what crossed each link at the end; --fault does so, too");
  command.add_option("--counters", options->counters,
                     "write the fabric's counters at the end: a JSON file, - for standard output");
}

/// Options of --compare.
void add_compare_options(CLI::App& command, const Options& options) {
  CLI::Option* compare =
      command.add_flag("--compare", options->compare,
                       "run gdr transfer between two hosts, or programs of yours, and compare "
                       "their bytes with the stages of gdr explain");
  for (const char* other : {"--native", "--dry-run", "--probe"})
    compare->excludes(command.get_option(other));
  const auto add = [&](const char* name, std::string& value, const char* text) {
    CLI::Option* option =
        command.add_option(name, value, std::string("--compare: ") + text)->needs(compare);
    if (!value.empty()) option->capture_default_str();
    return option;
  };
  command
      .add_option("--path", options->paths,
                  "--compare: gdr, staged, tcp, or all (default); may be given again")
      ->needs(compare)
      ->allow_extra_args(false);
  add("--size", options->size, "of the one message; of programs of yours, all that they transfer");
  add("--operation", options->operation, "write, read or send")
      ->check(CLI::IsMember({"write", "read", "send"}));
  add("--from", options->from, "HOST/GPU that the bytes leave (default: the first host's first)");
  add("--to", options->to, "HOST/GPU that they reach (default: the same GPU of the second host)");
  add("--via", options->via, "NICs to use, as in h0/nic1,h1/nic1 (default: the nearest)");
  add("--transfer", options->transfer, "more options of gdr transfer, as in '--chunk 16KiB'");
  add("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
}

void add_kept(CLI::App& emulate, Context& context, const Options& options) {
  const auto finish = [&context](CLI::App* command, const char* example, Run run) {
    command->footer(std::string("Example:\n  ") + example);
    command->callback([run = std::move(run), &context] { context.exit_code = interruptible(run); });
  };
  CLI::App* up = emulate.add_subcommand("up", "Start guests that stay, under a name");
  up->add_option("name", options->name, "name for them")->required();
  up->add_option("topology", options->topology, "topology file")->required();
  up->add_option("--timeout", options->timeout,
                 "give up when they are not up after this time (exit code 124)")
      ->capture_default_str();
  up->add_flag("--replace", options->replace, "end guests of that name first");
  add_guest_options(*up, options);
  finish(up, "gdr emulate up test topologies/clusters/two-dgx-a100.json",
         [options, &context](emu::Signals& signals) {
           return emulate_up(*options, *context.models, signals);
         });
  CLI::App* in = emulate.add_subcommand("in", "Run a command in guests that are up");
  in->add_option("name", options->name, "their name")->required();
  add_command_options(*in, options,
                      "stop the command, not the guests, after this time (exit code 124)");
  in->add_option(
        "--fault", options->faults,
        "what links do while the command runs, instead of the --fault of up; may be given again")
      ->allow_extra_args(false);
  in->add_option("--seed", options->seed, "seed of the random choices of --fault")
      ->capture_default_str();
  finish(in, "gdr emulate in test -- ibv_devices",
         [options](emu::Signals& signals) { return emulate_in(*options, signals); });
  CLI::App* down = emulate.add_subcommand("down", "End guests; no error when they are not up");
  down->add_option("name", options->name, "their name")->required();
  finish(down, "gdr emulate down test",
         [options](emu::Signals& signals) { return emulate_down(*options, signals); });
  finish(emulate.add_subcommand("list",
                                "Guests that are up: name, process, hosts, topology, its file"),
         "gdr emulate list", [](emu::Signals&) { return emulate_list(); });
}

}  // namespace

void add_emulate(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("emulate",
                         "Run a command on the hosts of a topology: one QEMU guest "
                         "per host, with its PCIe tree, SoftRoCE NICs and fake GPUs");
  auto options = std::make_shared<EmulateOptions>();
  command->add_option("topology", options->topology, "topology file");
  add_command_options(*command, options, "stop everything after this time (exit code 124)");
  add_guest_options(*command, options);
  command->add_flag(
      "--native", options->native,
      "no guest: this machine's own rdma_rxe, for a topology of one host; needs root");
  command->add_flag("--dry-run", options->dry_run, "print the QEMU command lines");
  command->add_flag("--probe", options->probe, "say how guests would run here and what is missing");
  add_compare_options(*command, options);
  command->require_subcommand(0, 1);
  add_kept(*command, context, options);
  command->footer(
      "Examples:\n"
      "  gdr emulate topologies/clusters/two-dgx-a100.json -- ibv_devices\n"
      "  gdr emulate two.json --on h0 ./server --on h1 './client $GDR_PEER_h0_NIC_0'\n"
      "  gdr emulate topologies/clusters/two-gh200.json --compare --path gdr\n"
      "  gdr emulate two.json --compare --path gdr --on h0 ./send --on h1 ./take\n"
      "\n"
      "Exit codes: that of the first command to fail; 2 wrong input, 124 --timeout,\n"
      "125 a guest failed, 128 + N signal N. --compare: 0 all bytes are equal, 1 not,\n"
      "or one failed; 2, 124, 125, 128 + N as above.");
  command->callback([command, options, &context] {
    if (command->get_subcommands().empty())
      context.exit_code = run_plain(*options, *context.models);
  });
}

}  // namespace gdr::cli
