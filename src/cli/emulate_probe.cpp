#include <fmt/format.h>

#include "emu/process/process.hpp"
#include "emu/run/native.hpp"
#include "src/cli/emulate_options.hpp"

namespace gdr::cli {

int emulate_probe() {
  bool complete = true;
  const auto need = [&](bool there, const std::string& have, const std::string& missing) {
    fmt::print("{}\n", there ? have : missing);
    complete = complete && there;
  };
  const auto kernels = emu::cached_kernels();
  const bool hangs = !kernels.empty() && emu::kvm_booted(kernels.back()) == false;
  fmt::print("{}\n", hangs ? "QEMU translates the guest's code (TCG): KVM makes virtual machines "
                             "here, but no kernel boots in them."
                           : emu::choose_accelerator().reason);
  need(emu::is_in_path("qemu-system-x86_64"), "QEMU is installed.",
       "QEMU is missing: install the package qemu-system-x86.");
  if (!kernels.empty()) {
    fmt::print("Guests boot Debian's kernel {}, which is in {}.\n", kernels.back(),
               emu::cache_folder());
  } else {
    const bool apt = emu::is_in_path("apt-get") && emu::is_in_path("dpkg");
    need(
        apt,
        fmt::format("The guests' kernel is not in {} yet: the first run downloads it with apt-get.",
                    emu::cache_folder()),
        "The guests' kernel cannot be downloaded: apt-get and dpkg are missing.");
    need(emu::is_in_path("make") && emu::is_in_path("gcc"),
         "The module for fake GPUs can be built.",
         "The module for fake GPUs cannot be built: install the packages make and gcc.");
  }
  const bool tools = emu::is_in_path("/sbin/ip") || emu::is_in_path("/bin/ip");
  need(tools, "Guests set their NICs up with this machine's ip and rdma.",
       "ip and rdma are missing: install the package iproute2.");
  const auto missing = emu::missing_for_native(emu::look_at_machine());
  if (missing.empty())
    fmt::print("--native can be used, for a topology of one host: this machine has rdma_rxe.\n");
  else fmt::print("--native cannot be used: {}.\n", fmt::join(missing, "; "));
  return complete ? 0 : 1;
}

}  // namespace gdr::cli
