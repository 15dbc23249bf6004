#include "emu/image/kernel_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "emu/image/cache_entries.hpp"
#include "emu/image/debian_packages.hpp"
#include "emu/image/initramfs.hpp"
#include "emu/image/kernel_image.hpp"
#include "emu/process/process.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

constexpr const char* prefix = "kernel-";

std::string kernel_release(const std::string& kernel) {
  for (const auto& entry : fs::directory_iterator(kernel + "/lib/modules"))
    return entry.path().filename().string();
  throw InputError(fmt::format("{}/lib/modules is empty; remove {} and run again", kernel, kernel));
}

/// Downloads, unpacks and indexes a kernel, then adds it to the cache.
void add_kernel(const std::string& cache, Signals& signals, const Say& say) {
  DebianPackages packages(cache + "/download" + part, signals);
  auto kernel = packages.find_kernel();
  say(fmt::format("downloading Debian's kernel {} (86 MB; once)", kernel.version));
  const std::string folder = cache + "/" + prefix + kernel.version;
  const std::string making = folder + part;
  try {
    packages.unpack(kernel.names, making);
  } catch (const InputError&) {
    // The machine's package lists may be outdated.
    packages.update();
    kernel = packages.find_kernel();
    fs::remove_all(making);
    packages.unpack(kernel.names, making);
  }
  const std::string headers = making + "/usr/src/linux-headers-" + kernel.release + "/Makefile";
  std::string makefile = read_file(headers);
  const std::string absolute = "include /usr/src/";
  // Only this file of the headers has their installation path.
  if (const auto at = makefile.find(absolute); at != std::string::npos)
    makefile.replace(at, absolute.size(), "include ../");
  write_file(headers, makefile);
  const std::string depmod =
      is_in_path("/usr/sbin/depmod") ? "/usr/sbin/depmod" : making + "/bin/busybox";
  std::vector<std::string> index{depmod, "-b", making, kernel.release};
  if (depmod.ends_with("busybox")) index.insert(index.begin() + 1, "depmod");
  run_or_throw(index, signals, "the index of the guest's kernel modules");
  fs::rename(making, cache + "/" + prefix + kernel.version);
}

struct Made {
  std::string kernel;
  std::string module;
  std::string initramfs;
  std::string image;  ///< the unpacked kernel
  [[nodiscard]] bool complete() const {
    return !kernel.empty() && fs::exists(module) && fs::exists(initramfs) && fs::exists(image);
  }
};

/// The paths of all parts, whether they exist or not.
Made places(const std::string& cache, const std::string& sources) {
  Made made;
  const auto kernels = cached_kernels();
  if (kernels.empty()) return made;
  made.kernel = cache + "/" + prefix + kernels.back();
  made.image = made.kernel + "/boot/vmlinux";
  auto files = files_below(sources + "/module");
  made.module = fmt::format("{}/module-{}/gdr_fakegpu.ko", made.kernel, fingerprint(files));
  for (const std::string& file : files_below(sources + "/guest")) files.push_back(file);
  made.initramfs =
      fmt::format("{}/initramfs-{}-{}.cpio", made.kernel, initramfs_version, fingerprint(files));
  return made;
}

}  // namespace

std::string cache_folder() {
  const auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value != nullptr && *value == '/' ? std::string(value) : std::string();
  };
  if (const std::string chosen = set("XDG_CACHE_HOME"); !chosen.empty()) return chosen + "/gdr";
  if (const std::string home = set("HOME"); !home.empty()) return home + "/.cache/gdr";
  throw InputError(
      "the guests' kernel is stored in a cache: set XDG_CACHE_HOME (or HOME) to a folder's "
      "absolute path");
}

std::vector<std::string> cached_kernels() {
  std::vector<std::pair<fs::file_time_type, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(cache_folder(), error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && !name.ends_with(part))
      found.emplace_back(entry.last_write_time(), name.substr(std::strlen(prefix)));
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> versions;
  for (auto& [time, version] : found) versions.push_back(std::move(version));
  return versions;
}

Kernel prepare_kernel(const std::string& sources, Signals& signals, const Say& say) {
  const std::string cache = cache_folder();
  Made made = places(cache, sources);
  if (!made.complete()) {
    const UniqueFd held = lock_cache(cache, signals, say);
    remove_parts(cache);
    const PartsRemover remover{cache};
    if (cached_kernels().empty()) add_kernel(cache, signals, say);
    made = places(cache, sources);
    if (!fs::exists(made.module)) {
      say("building the module for fake GPUs (once)");
      build_module(made.kernel + "/usr/src/linux-headers-" + kernel_release(made.kernel),
                   sources + "/module", fs::path(made.module).parent_path(), signals);
    }
    if (!fs::exists(made.initramfs)) {
      write_initramfs(made.initramfs + part,
                      {made.kernel + "/lib/modules/" + kernel_release(made.kernel), made.module,
                       made.kernel + "/bin/busybox", sources + "/guest"});
      fs::rename(made.initramfs + part, made.initramfs);
    }
    if (!fs::exists(made.image)) {
      const std::string packed =
          read_file(made.kernel + "/boot/vmlinuz-" + kernel_release(made.kernel));
      const std::string image = unpacked_kernel(packed);
      write_file(made.image + part, image.empty() ? packed : image);
      fs::rename(made.image + part, made.image);
    }
  }
  const std::string release = kernel_release(made.kernel);
  return {made.kernel.substr(cache.size() + 1 + std::strlen(prefix)), release, made.image,
          made.kernel + "/lib/modules/" + release, made.initramfs};
}

}  // namespace gdr::emu
