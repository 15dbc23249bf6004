#pragma once

#include <string>

namespace gdr::emu {

/// The ELF file inside a bzImage ("vmlinuz"). QEMU starts it by the PVH protocol, and the kernel
/// does not unpack itself, which takes most of a bare kernel's boot under TCG. Empty when there is
/// none, it is packed in a way that is not known, or it does not start by PVH: then the bzImage
/// itself has to do.
std::string unpacked_kernel(const std::string& image);

}  // namespace gdr::emu
