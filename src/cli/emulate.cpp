#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "common/error.hpp"
#include "common/file.hpp"
#include "common/units.hpp"
#include "emu/accelerator.hpp"
#include "emu/guests.hpp"
#include "emu/process.hpp"
#include "emu/run_folder.hpp"
#include "emu/shell.hpp"
#include "topology/topology_json.hpp"

namespace gdr::cli {
namespace {

struct Options {
  std::string topology;
  std::vector<std::string> settings;
  std::vector<std::string> command;
  std::string timeout = "5min";
  std::string accelerator = "auto";
  std::string gpu_files;
  std::vector<std::string> refusals;
  bool dry_run = false;
  bool probe = false;
};

void say(const std::string& text) { fmt::print(stderr, "gdr: {}\n", text); }

/// Beside the models: in the source tree, or in share/gdr.
std::string emulation_sources(const ModelLibrary& models) { return std::filesystem::path(models.folder()).parent_path() / "emu"; }

/// `kernel` is null where nothing may be tried.
bool use_kvm(const Options& options, const emu::Kernel* kernel, emu::Signals& signals) {
  if (options.accelerator == "tcg") return false;
  const emu::Accelerator found = emu::choose_accelerator();
  if (options.accelerator == "kvm" && !found.kvm) throw InputError("--accelerator kvm: " + found.reason);
  if (!found.kvm || kernel == nullptr || options.accelerator == "kvm") return found.kvm;
  if (emu::kvm_boots(*kernel, signals)) return true;
  say("KVM makes virtual machines here, but a kernel does not boot in them: TCG is used");
  return false;
}

/// One sentence each: how guests would run, and what is missing.
int probe() {
  bool complete = true;
  const auto need = [&](bool there, const std::string& have, const std::string& missing) {
    fmt::print("{}\n", there ? have : missing);
    complete = complete && there;
  };
  const auto kernels = emu::cached_kernels();
  const bool hangs = !kernels.empty() && emu::kvm_booted(kernels.back()) == false;
  fmt::print("{}\n", hangs
                         ? "QEMU translates the guest's code (TCG): KVM makes virtual machines here, but no kernel boots in them."
                         : emu::choose_accelerator().reason);
  need(emu::is_in_path("qemu-system-x86_64"), "QEMU is installed.", "QEMU is missing: install the package qemu-system-x86.");
  if (!kernels.empty()) {
    fmt::print("Guests boot Debian's kernel {}, which is in {}.\n", kernels.back(), emu::cache_folder());
  } else {
    const bool apt = emu::is_in_path("apt-get") && emu::is_in_path("dpkg");
    need(apt, fmt::format("The guests' kernel is not in {} yet: the first run downloads it with apt-get.", emu::cache_folder()),
         "The guests' kernel cannot be had: apt-get and dpkg are missing.");
    need(emu::is_in_path("make") && emu::is_in_path("gcc"), "The module for fake GPUs can be built.",
         "The module for fake GPUs cannot be built: install the packages make and gcc.");
  }
  const bool tools = emu::is_in_path("/sbin/ip") || emu::is_in_path("/bin/ip");
  need(tools, "Guests set their NICs up with this machine's ip and rdma.",
       "ip and rdma are missing: install the package iproute2.");
  return complete ? 0 : 1;
}

/// The current folder, or nothing where it cannot be made writable alone.
std::string work_folder() {
  const std::string folder = std::filesystem::current_path();
  return folder == "/" ? "" : folder;
}

emu::Kernel kernel_for(const Options& options, const ModelLibrary& models, emu::Signals& signals) {
  if (!options.dry_run || !emu::cached_kernels().empty()) return emu::prepare_kernel(emulation_sources(models), signals, say);
  say("no kernel is in the cache yet: KERNEL, MODULES and INITRAMFS stand for its files");
  return {"VERSION", "RELEASE", "KERNEL", "MODULES", "INITRAMFS"};
}

int emulate(const Options& options, const ModelLibrary& models) {
  const std::vector<Setting> settings = parse_settings(options.settings);
  const Topology topology = load_topology(options.topology, settings);
  const Duration timeout = parse_duration(options.timeout);
  if (options.command.empty() && !options.dry_run)
    throw InputError("COMMAND is missing: write it behind --, as in -- ibv_devices");
  if (!options.dry_run && !emu::is_in_path("qemu-system-x86_64"))
    throw InputError(
        "qemu-system-x86_64 is not installed; install the package qemu-system-x86 (gdr emulate --probe says what else is "
        "missing)");

  emu::Signals signals;
  emu::RunPlan run;
  run.work_folder = work_folder();
  run.command = options.command;
  for (const std::string& refusal : options.refusals) run.refusals.push_back(emu::parse_refusal(refusal, topology));
  run.files = "RUN";
  run.gpu_files = options.gpu_files.empty() ? run.files : std::filesystem::absolute(options.gpu_files).string();
  const auto plan_all = [&] {
    std::vector<emu::GuestPlan> plans;
    for (std::size_t host = 0; host < topology.hosts.size(); ++host)
      plans.push_back(emu::plan_guest(topology, host, run, models));
    return plans;
  };
  // What cannot be emulated is refused before anything is fetched.
  for (const emu::GuestPlan& plan : plan_all())
    if (!plan.note.empty()) say(plan.note);
  auto wiring = emu::wire_hosts(topology, emu::first_nic_descriptor);
  run.kernel = kernel_for(options, models, signals);
  run.kvm = use_kvm(options, options.dry_run ? nullptr : &run.kernel, signals);
  if (options.dry_run) {
    const auto plans = plan_all();
    for (std::size_t host = 0; host < plans.size(); ++host) {
      std::vector<std::string> line = plans[host].qemu;
      line.insert(line.end(), wiring[host].arguments.begin(), wiring[host].arguments.end());
      fmt::print("{}\n", emu::shell_line(line));
    }
    return 0;
  }
  const emu::RunFolder folder;
  run.files = folder.path();
  if (options.gpu_files.empty()) run.gpu_files = run.files;
  const auto plans = plan_all();
  emu::Outcome outcome = emu::run_guests(plans, std::move(wiring), timeout, signals);
  if (outcome.before_commands) {
    say(outcome.error);
    say("starting the guests once more");
    outcome = emu::run_guests(plans, emu::wire_hosts(topology, emu::first_nic_descriptor), timeout, signals);
  }
  if (!outcome.error.empty()) say(outcome.error);
  return outcome.exit_code;
}

int run(const Options& options, const ModelLibrary& models) {
  if (options.probe) return probe();
  if (options.topology.empty()) throw InputError("topology is required; \"gdr emulate --help\" says what there is");
  try {
    return emulate(options, models);
  } catch (const emu::Interrupted& interrupted) {
    return 128 + interrupted.signal;
  }
}

}  // namespace

void add_emulate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "emulate", "Run a command on the hosts of a topology: a QEMU guest each, with its PCIe tree, SoftRoCE NICs and fake GPUs");
  auto options = std::make_shared<Options>();
  command->add_option("topology", options->topology, "topology file");
  command->add_option("command", options->command, "-- COMMAND ARGUMENT...: run on every host, as root of the guest");
  command
      ->add_option("--set", options->settings, "KEY=VALUE: edit the topology first, as in iommu=translate or h0/gpu0.acs=RR+CR")
      ->allow_extra_args(false);
  command->add_option("--timeout", options->timeout, "stop everything after this time (exit code 124)")->capture_default_str();
  command->add_option("--accelerator", options->accelerator, "auto (KVM where it can be used), kvm or tcg")
      ->check(CLI::IsMember({"auto", "kvm", "tcg"}))
      ->capture_default_str();
  command
      ->add_option("--gpu-files", options->gpu_files,
                   "existing folder for the files behind GPU memory, HOST-GPU.memory, which are kept")
      ->check(CLI::ExistingDirectory);
  command
      ->add_option("--refuse-registration", options->refusals,
                   "HOST/gpuN-nicM[,after=COUNT][,above=SIZE]: fault, registering that GPU's memory on that NIC fails (EFAULT)")
      ->allow_extra_args(false);
  command->add_flag("--dry-run", options->dry_run, "print the QEMU command lines");
  command->add_flag("--probe", options->probe, "say how guests would run here and what is missing");
  command->footer(
      "Example:\n"
      "  gdr emulate topologies/clusters/two-dgx-a100.json -- ibv_devices\n"
      "\n"
      "Exit codes: that of the first command to fail; 2 wrong input, 124 --timeout,\n"
      "125 a guest failed, 128 + N signal N.");
  command->callback([options, &context] { context.exit_code = run(*options, *context.models); });
}

}  // namespace gdr::cli
