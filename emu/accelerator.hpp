#pragma once

#include <string>

namespace gdr::emu {

/// How QEMU runs the guest's code.
struct Accelerator {
  bool kvm = false;
  std::string reason;  ///< a sentence: why this one
};

/// KVM when /dev/kvm can be used, else TCG.
Accelerator choose_accelerator();

}  // namespace gdr::emu
