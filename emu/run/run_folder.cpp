#include "emu/run/run_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

std::string parent_folder() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* chosen = std::getenv("TMPDIR");
  return chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
}

UniqueFd open_folder(const std::string& path) {
  return UniqueFd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

/// Folders of our user that no process has locked.
void remove_abandoned(const std::string& parent, const std::string& prefix) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(parent, error)) {
    if (!entry.path().filename().string().starts_with(prefix)) continue;
    const UniqueFd folder = open_folder(entry.path());
    struct stat status {};
    if (folder.get() < 0 || fstat(folder.get(), &status) != 0 || status.st_uid != geteuid())
      continue;
    if (flock(folder.get(), LOCK_EX | LOCK_NB) == 0) fs::remove_all(entry.path(), error);
  }
}

}  // namespace

RunFolder::RunFolder() {
  const std::string parent = parent_folder();
  const std::string prefix = fmt::format("gdr-emulate-{}-", geteuid());
  remove_abandoned(parent, prefix);
  // Between mkdtemp and flock another run may take the new folder for an abandoned one and remove
  // it: then make it again.
  for (int attempt = 0; attempt < 100; ++attempt) {
    path_ = parent + "/" + prefix + "XXXXXX";
    if (mkdtemp(path_.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), path_);
    lock_ = open_folder(path_);
    if (lock_.get() >= 0 && flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 && fs::exists(path_)) return;
  }
  throw std::system_error(EAGAIN, std::generic_category(), path_);
}

RunFolder::~RunFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace gdr::emu
