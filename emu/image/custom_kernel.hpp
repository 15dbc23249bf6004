#pragma once

#include <string>

#include "emu/image/kernel_cache.hpp"

namespace gdr::emu {

/// A kernel of the user's: its image (bzImage, vmlinuz) and its lib/modules/RELEASE. The initramfs
/// is made in the cache. Our module is built with modules/build, the kernel's build folder or
/// headers; without it guests have no /dev/gdr-gpuK, and that is said. Throws InputError that names
/// what is missing (files, modules as rdma_rxe), Interrupted.
Kernel prepare_own_kernel(const std::string& image, const std::string& modules,
                          const std::string& sources, Signals& signals, const Say& say);

}  // namespace gdr::emu
