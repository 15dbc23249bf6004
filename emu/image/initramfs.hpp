#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdr::emu {

struct InitramfsParts {
  std::string modules;     ///< the kernel's /lib/modules/RELEASE, with modules.dep
  std::string gpu_module;  ///< gdr_fakegpu.ko, next to our other modules; empty: none
  std::string busybox;     ///< statically linked
  std::string scripts;     ///< folder with init and start
};

/// Must be incremented when write_initramfs() changes what it writes.
inline constexpr int initramfs_version = 2;

/// Writes the archive that the kernel unpacks as its first root file system. Throws InputError.
void write_initramfs(const std::string& path, const InitramfsParts& parts);

/// The files of the `wanted` modules and their dependencies, in load order. `modules_dep` is the
/// text of modules.dep; `modules_builtin` lists modules that are part of the kernel. Throws
/// InputError that names missing modules.
std::vector<std::string> load_order(std::string_view modules_dep,
                                    const std::vector<std::string>& wanted,
                                    std::string_view modules_builtin = "");

/// Modules for RDMA and for mounting the machine's files.
const std::vector<std::string>& wanted_modules();

/// load_order() of these modules in a kernel's /lib/modules/RELEASE.
std::vector<std::string> guest_modules(const std::string& modules);

}  // namespace gdr::emu
