#pragma once

#include <string>

#include "emu/image/kernel_cache.hpp"

namespace gdr::emu {

/// Prepares a kernel that the user supplies: its image (bzImage, vmlinuz) and its
/// lib/modules/RELEASE. The cache gets its initramfs. Our module is built with modules/build, the
/// kernel's build folder or headers; without it guests have no /dev/gdr-gpuK, and `say` reports
/// that. Throws InputError that names what is missing (files, modules such as rdma_rxe),
/// Interrupted.
Kernel prepare_own_kernel(const std::string& image, const std::string& modules,
                          const std::string& sources, Signals& signals, const Say& say);

}  // namespace gdr::emu
