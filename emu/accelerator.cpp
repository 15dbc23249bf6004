#include "emu/accelerator.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

#include "emu/unique_fd.hpp"

namespace gdr::emu {

Accelerator choose_accelerator() {
  const auto without = [](const std::string& why) {
    return Accelerator{false, fmt::format("QEMU translates the guest's code (TCG), about ten times slower than KVM, since {}.", why)};
  };
  const UniqueFd kvm(open("/dev/kvm", O_RDWR | O_CLOEXEC));
  if (kvm.get() < 0) return without(fmt::format("/dev/kvm cannot be opened: {}", std::strerror(errno)));
  if (ioctl(kvm.get(), KVM_GET_API_VERSION, 0) != KVM_API_VERSION) return without("/dev/kvm has another API version");
  const UniqueFd machine(ioctl(kvm.get(), KVM_CREATE_VM, 0));
  if (machine.get() < 0) return without(fmt::format("/dev/kvm makes no virtual machine: {}", std::strerror(errno)));
  return {true, "QEMU uses KVM: /dev/kvm makes virtual machines."};
}

}  // namespace gdr::emu
