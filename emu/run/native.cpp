#include "emu/run/native.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>

#include "emu/machine/addresses.hpp"
#include "emu/process/process.hpp"
#include "emu/process/shell.hpp"
#include "emu/run/run_once.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

/// Whether it is loaded, built in, or a module of the running kernel.
bool has_module(const std::string& release, const std::string& name) {
  std::error_code error;
  if (fs::exists("/sys/module/" + name, error)) return true;
  for (const char* list : {"modules.dep", "modules.builtin"}) {
    const std::string path = fmt::format("/lib/modules/{}/{}", release, list);
    if (fs::exists(path, error) && read_file(path).find("/" + name + ".ko") != std::string::npos)
      return true;
  }
  return false;
}

struct TakeDown {
  const NativePlan& plan;
  ~TakeDown() {
    const UniqueFd null(open("/dev/null", O_WRONLY | O_CLOEXEC));
    for (const auto& step : plan.take_down) {
      try {
        Process process(step, null.get());
        while (!process.exit_code()) poll(nullptr, 0, 1);
      } catch (const std::system_error&) {
        continue;  // the next step may still work
      }
    }
  }
};

}  // namespace

NativeMachine look_at_machine() {
  utsname name{};
  uname(&name);
  return {has_module(name.release, "rdma_rxe"), geteuid() == 0,
          is_in_path("ip") && is_in_path("rdma"), name.release};
}

std::vector<std::string> missing_for_native(const NativeMachine& machine) {
  std::vector<std::string> missing;
  if (!machine.has_rxe)
    missing.push_back(fmt::format(
        "this machine's kernel {} has no module rdma_rxe (CONFIG_RDMA_RXE)", machine.release));
  if (!machine.has_tools) missing.emplace_back("ip and rdma are not in PATH (package iproute2)");
  if (!machine.is_root) missing.emplace_back("only root may add rxe devices");
  return missing;
}

NativePlan plan_native(const Topology& topology) {
  if (topology.hosts.size() != 1)
    throw InputError(fmt::format(
        "{}: --native runs a topology of one host, this has {}; without --native each is a guest",
        topology.name, topology.hosts.size()));
  const Host& host = topology.hosts.front();
  NativePlan plan;
  plan.set_up.push_back({"modprobe", "rdma_rxe"});
  plan.environment = {{"GDR_HOST", host.name}, {"GDR_HOST_INDEX", "0"}, {"GDR_PEERS", ""}};
  for (const Numbered& nic : numbered_devices(host, DeviceKind::nic)) {
    const std::string interface = fmt::format("gdr-nic{}", nic.number);
    const std::string rxe = fmt::format("rxe{}", nic.number);
    const std::string address = ip_address(0, nic.number);
    plan.set_up.push_back({"ip", "link", "add", interface, "mtu", "4200", "type", "dummy"});
    plan.set_up.push_back({"ip", "address", "add", address + "/24", "dev", interface});
    plan.set_up.push_back({"ip", "link", "set", interface, "up"});
    plan.set_up.push_back({"rdma", "link", "add", rxe, "type", "rxe", "netdev", interface});
    plan.take_down.push_back({"ip", "link", "delete", interface});  // removes its rxe device, too
    plan.environment.emplace_back(fmt::format("GDR_NIC_{}", nic.number), address);
  }
  return plan;
}

int run_native(const NativePlan& plan, const std::string& command, Duration timeout,
               Signals& signals) {
  const Deadline deadline(timeout);
  const TakeDown take_down{plan};
  for (const auto& step : plan.set_up) {
    // A module that is built in or loaded needs no modprobe.
    std::error_code error;
    if (step.front() == "modprobe" && fs::exists("/sys/module/" + step.back(), error)) continue;
    run_or_throw(step, signals, "--native");
  }
  std::string line;
  for (const auto& [name, value] : plan.environment)
    line += fmt::format("export {}={}\n", name, shell_word(value));
  // A Process has one output: pass our standard output and error as 3 and 4.
  Process process({"/bin/sh", "-c", "exec >&3 2>&4 3>&- 4>&-\n" + line + command}, STDERR_FILENO,
                  {STDOUT_FILENO, STDERR_FILENO});
  while (!process.exit_code()) {
    if (deadline.passed()) return exit_timeout;
    constexpr int tick_ms = 100;
    pollfd fd{signals.fd(), POLLIN, 0};
    poll(&fd, 1, std::min(tick_ms, deadline.left_ms()));
    signals.take();
  }
  return *process.exit_code();
}

}  // namespace gdr::emu
