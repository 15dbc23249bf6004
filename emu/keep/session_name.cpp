#include "emu/keep/session_name.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>

#include "src/common/error.hpp"

namespace gdr::emu {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

UniqueFd made_socket() {
  UniqueFd made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (made.get() < 0) fail("socket");
  return made;
}

bool same_file(int fd, const std::string& path) {
  struct stat opened {};
  struct stat there {};
  return fstat(fd, &opened) == 0 && stat(path.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

}  // namespace

std::string sessions_folder() {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  const std::string folder = runtime != nullptr && *runtime == '/'
                                 ? std::string(runtime) + "/gdr"
                                 : fmt::format("/tmp/gdr-{}", geteuid());
  constexpr mode_t owner_only = 0700;
  if (mkdir(folder.c_str(), owner_only) != 0 && errno != EEXIST)
    throw InputError(fmt::format("{}: cannot create this folder for guests that stay up: {}",
                                 folder, std::strerror(errno)));
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid() || (status.st_mode & 077) != 0)
    throw InputError(
        fmt::format("{}: must be your own folder, closed to other users (mode 0700)", folder));
  return folder;
}

SessionFiles session_files(const std::string& folder, const std::string& name) {
  constexpr std::string_view allowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.front() == '.' || name.find_first_not_of(allowed) != std::string::npos)
    throw InputError(fmt::format(
        "NAME: found \"{}\", allowed are letters, digits, . _ and -, not starting with a dot",
        printable(name)));
  const std::string path = folder + "/" + name;
  if ((path + ".socket").size() >= sizeof sockaddr_un{}.sun_path)
    throw InputError(fmt::format(
        "NAME: {}.socket is too long for a socket's path; choose a shorter name", path));
  return {path + ".lock", path + ".socket", path + ".failure"};
}

std::optional<UniqueFd> take_name(const SessionFiles& files) {
  // Another process may hold the lock for a moment to test it.
  for (int attempt = 0; attempt < 10; ++attempt) {
    UniqueFd lock(open(files.lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    if (lock.get() < 0) fail(files.lock);
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    // The previous owner may have removed the file between our open() and flock().
    if (!same_file(lock.get(), files.lock)) continue;
    unlink(files.socket.c_str());
    unlink(files.failure.c_str());
    return lock;
  }
  return std::nullopt;
}

bool in_use(const SessionFiles& files) {
  const UniqueFd lock(open(files.lock.c_str(), O_RDONLY | O_CLOEXEC));
  if (lock.get() < 0) return false;
  return flock(lock.get(), LOCK_EX | LOCK_NB) != 0;
}

void remove_files(const SessionFiles& files) {
  for (const std::string* file : {&files.socket, &files.failure, &files.lock})
    unlink(file->c_str());
}

void clean_up(const SessionFiles& files) {
  if (const auto lock = take_name(files)) remove_files(files);
}

std::vector<std::string> session_names(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".lock") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

UniqueFd listen_at(const std::string& path) {
  UniqueFd listener = made_socket();
  const sockaddr_un address = address_of(path);
  constexpr int waiting = 64;
  if (bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener.get(), waiting) != 0)
    fail(path);
  return listener;
}

std::optional<UniqueFd> connect_to(const std::string& path) {
  UniqueFd connection = made_socket();
  const sockaddr_un address = address_of(path);
  if (connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return std::nullopt;
  return connection;
}

}  // namespace gdr::emu
