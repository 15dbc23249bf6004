#include "emu/image/custom_kernel.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "emu/image/cache_entries.hpp"
#include "emu/image/debian_packages.hpp"
#include "emu/image/initramfs.hpp"
#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

/// The busybox of a cached kernel, or else a downloaded one.
std::string busybox(const std::string& cache, Signals& signals, const Say& say) {
  const auto kernels = cached_kernels();
  if (!kernels.empty()) return fmt::format("{}/kernel-{}/bin/busybox", cache, kernels.back());
  const std::string folder = cache + "/busybox";
  if (!fs::exists(folder)) {
    say("downloading Debian's busybox (once)");
    DebianPackages(cache + "/download" + part, signals).unpack({"busybox-static"}, folder + part);
    fs::rename(folder + part, folder);
  }
  return folder + "/bin/busybox";
}

}  // namespace

Kernel prepare_own_kernel(const std::string& image, const std::string& modules,
                          const std::string& sources, Signals& signals, const Say& say) {
  std::error_code error;
  if (!fs::is_regular_file(image, error))
    throw InputError(fmt::format("--kernel {}: there is no such file", image));
  const std::string folder = fs::weakly_canonical(modules, error);
  if (!fs::exists(folder + "/modules.dep", error))
    throw InputError(
        fmt::format("--modules {}: it has no modules.dep; give the kernel's lib/modules/RELEASE "
                    "and run depmod on it first",
                    modules));
  const std::string release = fs::path(folder).filename();
  std::vector<std::string> files;
  try {
    for (const std::string& file : guest_modules(folder)) files.push_back(folder + "/" + file);
  } catch (const InputError& missing) {
    throw InputError(fmt::format("--modules {}: {}", modules, missing.what()));
  }
  const std::string headers = folder + "/build";
  const bool has_headers = fs::exists(headers + "/Makefile", error);
  if (!has_headers)
    say(fmt::format(
        "{} does not exist: guests have no /dev/gdr-gpuK, since its module cannot be built",
        headers));

  const std::string cache = cache_folder();
  const UniqueFd held = lock_cache(cache, signals, say);
  remove_parts(cache);
  const PartsRemover remover{cache};
  std::string module;
  const auto module_sources = files_below(sources + "/module");
  const std::string own = fmt::format("{}/own-{}", cache, release);
  fs::create_directories(own);
  if (has_headers) {
    files.push_back(headers + "/.config");
    files.insert(files.end(), module_sources.begin(), module_sources.end());
  }
  for (const std::string& file : files_below(sources + "/guest")) files.push_back(file);
  std::erase_if(files, [&](const std::string& file) { return !fs::exists(file, error); });
  const std::string mark =
      fmt::format("{}-{}{}", initramfs_version, fingerprint(files), has_headers ? "" : "-no-gpu");
  const std::string initramfs = fmt::format("{}/initramfs-{}.cpio", own, mark);
  if (!fs::exists(initramfs)) {
    if (has_headers) {
      module = fmt::format("{}/module-{}", own, mark);
      if (!fs::exists(module)) build_module(headers, sources + "/module", module, signals);
      module += "/gdr_fakegpu.ko";
    }
    write_initramfs(initramfs + part,
                    {folder, module, busybox(cache, signals, say), sources + "/guest"});
    fs::rename(initramfs + part, initramfs);
  }
  return {"own-" + release + "-" + fingerprint({image}), release, fs::absolute(image), folder,
          initramfs};
}

}  // namespace gdr::emu
