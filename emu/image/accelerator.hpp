#pragma once

#include <optional>
#include <string>

#include "emu/image/kernel_cache.hpp"
#include "emu/process/signals.hpp"

namespace gdr::emu {

/// How QEMU runs the guest's code.
struct Accelerator {
  bool kvm = false;
  std::string reason;  ///< a sentence: why this one
};

/// KVM when /dev/kvm makes virtual machines, else TCG.
Accelerator choose_accelerator();

/// Whether `kernel` gets going under KVM, by trying it with nothing else in the machine. A KVM
/// inside a virtual machine may make machines whose processor hangs as soon as a kernel starts. The
/// answer is kept in the cache until the machine is booted again. Throws Interrupted.
bool kvm_boots(const Kernel& kernel, Signals& signals);

/// The answer of kvm_boots() for a kernel of the cache, when it has been asked since the machine
/// was booted.
std::optional<bool> kvm_booted(const std::string& kernel_version);

}  // namespace gdr::emu
