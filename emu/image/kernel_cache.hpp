#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emu/process/signals.hpp"

namespace gdr::emu {

/// The kernel that guests boot.
struct Kernel {
  std::string version;  ///< of Debian's package
  std::string release;  ///< uname -r
  std::string image;    ///< vmlinuz
  std::string modules;  ///< the kernel's /lib/modules/RELEASE
  std::string initramfs;
};

/// Called with one line for each step that takes a while.
using Say = std::function<void(const std::string&)>;

/// $XDG_CACHE_HOME/gdr, or ~/.cache/gdr. Throws InputError when neither is set.
std::string cache_folder();

/// The newest kernel in the cache; downloads Debian's linux-image-amd64 if there is none. Builds
/// our module (from `sources`/module, against the headers of this kernel) and the initramfs
/// (`sources`/guest) if they are missing or out of date. Concurrent runs wait for each other;
/// leftovers of interrupted runs are removed. Throws InputError, Interrupted.
Kernel prepare_kernel(const std::string& sources, Signals& signals, const Say& say);

/// Versions of kernels in the cache, newest last.
std::vector<std::string> cached_kernels();

}  // namespace gdr::emu
