#include "emu/image/cache_entries.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "emu/process/process.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {

namespace fs = std::filesystem;

UniqueFd lock_cache(const std::string& folder, Signals& signals, const Say& say) {
  std::error_code error;
  fs::create_directories(folder, error);
  UniqueFd file(open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (file.get() < 0)
    throw InputError(fmt::format("{}/lock: cannot open it: {}", folder, std::strerror(errno)));
  for (bool reported = false; flock(file.get(), LOCK_EX | LOCK_NB) != 0; reported = true) {
    if (errno != EWOULDBLOCK)
      throw std::system_error(errno, std::generic_category(), folder + "/lock");
    if (!reported) say("another run is preparing the kernel: waiting for it");
    constexpr int look_again_ms = 200;
    pollfd ready{signals.fd(), POLLIN, 0};
    poll(&ready, 1, look_again_ms);
    signals.take();
  }
  return file;
}

void remove_parts(const std::string& folder) {
  std::error_code error;
  std::vector<fs::path> parts;
  const auto look = [&](const fs::path& place) {
    for (const auto& entry : fs::directory_iterator(place, error))
      if (entry.path().filename().string().ends_with(part)) parts.push_back(entry.path());
  };
  look(folder);
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.is_directory()) {
      look(entry.path());
      look(entry.path() / "boot");
    }
  for (const fs::path& path : parts) fs::remove_all(path, error);
}

std::string fingerprint(const std::vector<std::string>& files) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const std::string& file : files)
    for (const char c : read_file(file))
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

void build_module(const std::string& headers, const std::string& sources, const std::string& target,
                  Signals& signals) {
  const std::string making = target + part;
  fs::create_directories(making);
  for (const std::string& file : files_below(sources))
    fs::copy(file, making, fs::copy_options::overwrite_existing);
  run_or_throw({"make", "-s", "-C", headers, "M=" + making, "modules"}, signals,
               "the module for fake GPUs");
  fs::rename(making, target);
}

}  // namespace gdr::emu
