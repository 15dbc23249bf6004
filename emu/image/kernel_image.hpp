#pragma once

#include <string>

namespace gdr::emu {

/// The ELF file inside a bzImage ("vmlinuz"). QEMU boots it with the PVH protocol, which saves the
/// kernel's self-extraction, most of a bare kernel's boot under TCG. Empty if there is none, its
/// compression is unknown, or it does not support PVH; boot the bzImage then.
std::string unpacked_kernel(const std::string& image);

}  // namespace gdr::emu
