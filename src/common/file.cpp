#include "src/common/file.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "src/common/error.hpp"

namespace gdr {
namespace {

constexpr std::size_t max_file_bytes = std::size_t{64} << 20U;

[[noreturn]] void fail(const std::string& path, std::string_view doing) {
  throw InputError(fmt::format("{}: cannot {}: {}", path, doing, std::strerror(errno)));
}

}  // namespace

std::string read_file(const std::string& path) {
  errno = 0;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(fmt::format("{}: is a directory, a file is needed", path));
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, "open it");
  std::string content;
  char buffer[1U << 16U];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    content.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (content.size() > max_file_bytes)
      throw InputError(fmt::format("{}: larger than 64 MiB, the limit for all files", path));
  }
  if (in.bad()) fail(path, "read it");
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") {
    if (std::fwrite(content.data(), 1, content.size(), stdout) != content.size() ||
        std::fflush(stdout) != 0)
      fail("standard output", "write to it");
    return;
  }
  std::error_code error;
  const bool special =
      std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error);
  // Replace the target of a symbolic link, not the link.
  const std::string real = std::filesystem::is_symlink(path, error)
                               ? std::filesystem::weakly_canonical(path, error).string()
                               : path;
  const std::string target = special ? path : real + ".part";
  errno = 0;
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  if (!out) fail(path, "write it");
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  if (!out) {
    const int reason = errno;
    if (!special) std::filesystem::remove(target, error);
    errno = reason;
    fail(path, "write it");
  }
  if (special) return;
  std::filesystem::rename(target, real, error);
  if (!error) return;
  const std::string reason = error.message();
  std::filesystem::remove(target, error);
  throw InputError(fmt::format("{}: cannot write it: {}", path, reason));
}

}  // namespace gdr
