#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emu/process/signals.hpp"

namespace gdr::emu {

/// What a guest boots.
struct Kernel {
  std::string version;  ///< of Debian's package
  std::string release;  ///< uname -r
  std::string image;    ///< vmlinuz
  std::string modules;  ///< the kernel's /lib/modules/RELEASE
  std::string initramfs;
};

/// Hears what takes a while, a line at a time.
using Say = std::function<void(const std::string&)>;

/// $XDG_CACHE_HOME/gdr, or ~/.cache/gdr. Throws InputError when neither is set.
std::string cache_folder();

/// The newest kernel in the cache; when there is none, Debian's linux-image-amd64 is downloaded.
/// Our module (from `sources`/module, built against the headers of exactly this kernel) and the
/// initramfs (`sources`/guest) are made when they are missing or older than their sources. Two runs
/// at once wait for each other; what an interrupted one left is removed. Throws InputError,
/// Interrupted.
Kernel prepare_kernel(const std::string& sources, Signals& signals, const Say& say);

/// Versions of kernels in the cache, newest last.
std::vector<std::string> cached_kernels();

}  // namespace gdr::emu
