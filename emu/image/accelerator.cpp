#include "emu/image/accelerator.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "emu/process/process.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/unique_fd.hpp"

namespace gdr::emu {
namespace {

constexpr const char* time_to_boot =
    "20";  // seconds; a kernel without a root file system panics within two

/// Identifies this boot of the machine and this kernel.
std::string circumstances(const std::string& kernel_version) {
  return read_file("/proc/sys/kernel/random/boot_id") + kernel_version + "\n";
}

std::string answer_file() { return cache_folder() + "/kvm"; }

std::string read_if_there(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? read_file(path) : "";
}

}  // namespace

Accelerator choose_accelerator() {
  const auto without = [](const std::string& why) {
    return Accelerator{
        false,
        fmt::format(
            "QEMU translates the guest's code (TCG), about ten times slower than KVM, since {}.",
            why)};
  };
  const UniqueFd kvm(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (kvm.get() < 0)
    return without(fmt::format("/dev/kvm cannot be opened: {}", std::strerror(errno)));
  if (ioctl(kvm.get(), KVM_GET_API_VERSION, 0) != KVM_API_VERSION)
    return without("/dev/kvm has another API version");
  const UniqueFd machine(ioctl(kvm.get(), KVM_CREATE_VM, 0));
  if (machine.get() < 0)
    return without(
        fmt::format("/dev/kvm cannot create a virtual machine: {}", std::strerror(errno)));
  return {true, "QEMU uses KVM: /dev/kvm can create virtual machines."};
}

std::optional<bool> kvm_booted(const std::string& kernel_version) {
  const std::string now = circumstances(kernel_version);
  const std::string remembered = read_if_there(answer_file());
  if (remembered == now + "yes\n") return true;
  if (remembered == now + "no\n") return false;
  return std::nullopt;
}

bool kvm_boots(const Kernel& kernel, Signals& signals) {
  if (const auto known = kvm_booted(kernel.version)) return *known;
  // A kernel without a root file system panics, and panic=-1 with -no-reboot ends QEMU.
  const auto trial = run_to_end({"timeout",
                                 time_to_boot,
                                 "qemu-system-x86_64",
                                 "-nodefaults",
                                 "-no-user-config",
                                 "-no-reboot",
                                 "-display",
                                 "none",
                                 "-machine",
                                 "q35",
                                 "-accel",
                                 "kvm",
                                 "-cpu",
                                 "host",
                                 "-m",
                                 "256M",
                                 "-kernel",
                                 kernel.image,
                                 "-append",
                                 "quiet panic=-1"},
                                signals);
  write_file(answer_file(),
             circumstances(kernel.version) + (trial.exit_code == 0 ? "yes\n" : "no\n"));
  return trial.exit_code == 0;
}

}  // namespace gdr::emu
