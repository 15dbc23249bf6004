#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdr::emu {

struct InitramfsParts {
  std::string modules;  ///< the kernel's /lib/modules/RELEASE, with modules.dep
  std::string
      gpu_module;       ///< gdr_fakegpu.ko, beside the other modules of ours; empty: there are none
  std::string busybox;  ///< statically linked
  std::string scripts;  ///< folder with init and start
};

/// Counts up when write_initramfs writes something else from the same parts.
inline constexpr int initramfs_version = 2;

/// Writes the archive that the kernel unpacks as its first root file system. Throws InputError.
void write_initramfs(const std::string& path, const InitramfsParts& parts);

/// The files of `wanted` modules and of all that they need, in the order in which they load.
/// `modules_dep` is the text of modules.dep; what `modules_builtin` lists is in the kernel itself.
/// Throws InputError naming the modules that are not there.
std::vector<std::string> load_order(std::string_view modules_dep,
                                    const std::vector<std::string>& wanted,
                                    std::string_view modules_builtin = "");

/// What a guest needs before it sees the machine's files, and RDMA.
const std::vector<std::string>& wanted_modules();

/// load_order() of those in a kernel's /lib/modules/RELEASE.
std::vector<std::string> guest_modules(const std::string& modules);

}  // namespace gdr::emu
