#pragma once

#include <optional>
#include <string>

#include "emu/image/kernel_cache.hpp"
#include "emu/process/signals.hpp"

namespace gdr::emu {

/// How QEMU runs the guest's code.
struct Accelerator {
  bool kvm = false;
  std::string reason;  ///< one sentence: why this accelerator
};

/// KVM if /dev/kvm can create virtual machines, else TCG.
Accelerator choose_accelerator();

/// Tests whether `kernel` boots under KVM, in an otherwise empty virtual machine. Nested KVM can
/// create virtual machines whose processor hangs as soon as a kernel starts. The result stays in
/// the cache until the machine is rebooted. Throws Interrupted.
bool kvm_boots(const Kernel& kernel, Signals& signals);

/// The cached result of kvm_boots() for a kernel; nullopt if it has not run since the machine was
/// booted.
std::optional<bool> kvm_booted(const std::string& kernel_version);

}  // namespace gdr::emu
