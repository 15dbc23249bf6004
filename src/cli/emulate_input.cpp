#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <filesystem>

#include "emu/fabric/fault_spec.hpp"
#include "emu/image/custom_kernel.hpp"
#include "emu/process/process.hpp"
#include "src/cli/emulate_options.hpp"
#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::cli {
namespace {

namespace fs = std::filesystem;

/// Beside the models: in the source tree, or in share/gdr.
std::string emulation_sources(const ModelLibrary& models) {
  return fs::path(models.folder()).parent_path() / "emu";
}

/// `kernel` is null where no test boot is allowed.
bool use_kvm(const EmulateOptions& options, const emu::Kernel* kernel, emu::Signals& signals) {
  if (options.accelerator == "tcg") return false;
  const emu::Accelerator found = emu::choose_accelerator();
  if (options.accelerator == "kvm" && !found.kvm)
    throw InputError("--accelerator kvm: " + found.reason);
  if (!found.kvm || kernel == nullptr || options.accelerator == "kvm") return found.kvm;
  if (emu::kvm_boots(*kernel, signals)) return true;
  say("KVM makes virtual machines here, but no kernel boots in them: TCG is used");
  return false;
}

/// The current folder; empty for "/", which cannot be made writable by itself.
std::string work_folder() {
  const std::string folder = fs::current_path();
  return folder == "/" ? "" : folder;
}

/// Checked before any boot; the file itself is created when the guests start.
void check_can_write(const std::string& option, const std::string& path) {
  if (path.empty() || path == "-") return;
  const fs::path folder = fs::absolute(path).parent_path();
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw InputError(
        fmt::format("{} {}: the folder {} is not there", option, path, folder.string()));
  if (fs::is_directory(path, error))
    throw InputError(fmt::format("{} {}: this is a folder, not a file", option, path));
  const bool there = fs::exists(path, error);
  if (access(there ? path.c_str() : folder.c_str(), W_OK) != 0)
    throw InputError(fmt::format("{} {}: cannot be written: {} is not writable", option, path,
                                 there ? path : folder.string()));
}

}  // namespace

void say(const std::string& text) { fmt::print(stderr, "gdr: {}\n", text); }

EmulationInput::EmulationInput(const EmulateOptions& options, const ModelLibrary& models)
    : options_(options),
      models_(models),
      topology_(load_topology(options.topology, parse_settings(options.settings))) {
  run_.work_folder = work_folder();
  run_.tool = fs::read_symlink("/proc/self/exe").string();
  run_.gpu_files = options.gpu_files.empty() ? "" : fs::absolute(options.gpu_files).string();
  if (options.kernel.empty() != options.modules.empty())
    throw InputError(
        "--kernel and --modules: give both, a kernel's image and its lib/modules/RELEASE");
  for (const std::string& refusal : options.refusals)
    run_.refusals.push_back(emu::parse_refusal(refusal, topology_));
  const emu::SessionPlan trial = plan("RUN");
  for (const emu::GuestPlan& guest : trial.guests)
    if (!guest.note.empty()) say(guest.note);
  fabric_.ports = emu::fabric_ports(trial.guests);
  fabric_.seed = {options.seed};
  if (!options.faults.empty())
    fabric::apply_faults(fmt::format("{}", fmt::join(options.faults, ";")), fabric_.ports);
  if (!options.pcap.empty()) fabric_.pcap = fs::absolute(options.pcap);
  check_can_write("--pcap", options.pcap);
  check_can_write("--counters", options.counters);
  if (!options.dry_run && !emu::is_in_path("qemu-system-x86_64"))
    throw InputError(
        "qemu-system-x86_64 is not installed; install the package qemu-system-x86 (gdr emulate "
        "--probe says what else is "
        "missing)");
}

void EmulationInput::prepare(emu::Signals& signals) {
  const std::string sources = emulation_sources(models_);
  if (!options_.kernel.empty()) {
    run_.kernel = emu::prepare_own_kernel(options_.kernel, options_.modules, sources, signals, say);
  } else if (!options_.dry_run || !emu::cached_kernels().empty()) {
    run_.kernel = emu::prepare_kernel(sources, signals, say);
  } else {
    say("no kernel is in the cache yet: KERNEL, MODULES and INITRAMFS stand for its files");
    run_.kernel = {"VERSION", "RELEASE", "KERNEL", "MODULES", "INITRAMFS"};
  }
  run_.kvm = use_kvm(options_, options_.dry_run ? nullptr : &run_.kernel, signals);
}

emu::SessionPlan EmulationInput::plan(const std::string& files) const {
  emu::RunPlan run = run_;
  run.files = files;
  if (run.gpu_files.empty()) run.gpu_files = files;
  emu::SessionPlan session;
  for (std::size_t host = 0; host < topology_.hosts.size(); ++host)
    session.guests.push_back(emu::plan_guest(topology_, host, run, models_));
  session.fabric = fabric_;
  return session;
}

std::vector<std::string> EmulationInput::hosts() const {
  std::vector<std::string> names;
  for (const Host& host : topology_.hosts) names.push_back(host.name);
  return names;
}

}  // namespace gdr::cli
