#include "emu/fabric/pcap.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>

#include "src/common/error.hpp"

namespace gdr::fabric {
namespace {

constexpr std::uint64_t ns_per_second = 1'000'000'000;

/// The magic number reveals the writer's byte order.
template <std::size_t N>
std::array<std::uint8_t, N * 4> bytes_of(const std::array<std::uint32_t, N>& values) {
  std::array<std::uint8_t, N * 4> bytes{};
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

}  // namespace

WallClock wall_clock_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return {static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count())};
}

PcapWriter::PcapWriter(const std::string& path, WallClock start)
    : path_(path),
      file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)),
      start_(start) {
  if (!file_.is_open())
    throw InputError(fmt::format("{}: cannot write it: {}", path, std::strerror(errno)));
  constexpr std::uint32_t magic_ns = 0xa1b23c4d;
  constexpr std::uint32_t ethernet = 1;
  std::uint32_t version = 0;
  constexpr std::array<std::uint16_t, 2> major_minor{2, 4};
  std::memcpy(&version, major_minor.data(), sizeof version);
  append(bytes_of<6>({magic_ns, version, 0, 0, max_frame_bytes, ethernet}), {});
  if (!error_.empty()) throw InputError(error_);
}

void PcapWriter::write(FrameView frame, Duration since_start) {
  if (!error_.empty()) return;
  const std::uint64_t time = start_.ns + static_cast<std::uint64_t>(std::llround(since_start.ns()));
  const auto length = static_cast<std::uint32_t>(frame.size());
  append(bytes_of<4>({static_cast<std::uint32_t>(time / ns_per_second),
                      static_cast<std::uint32_t>(time % ns_per_second), length, length}),
         frame);
}

void PcapWriter::append(FrameView header, FrameView frame) {
  const std::size_t wanted = header.size() + frame.size();
  std::array<iovec, 2> parts{{{const_cast<std::uint8_t*>(header.data()), header.size()},
                              {const_cast<std::uint8_t*>(frame.data()), frame.size()}}};
  ssize_t written = 0;
  do {
    written = ::writev(file_.get(), parts.data(), static_cast<int>(parts.size()));
  } while (written < 0 && errno == EINTR);
  if (written == static_cast<ssize_t>(wanted)) {
    size_ += wanted;
    return;
  }
  // A short write to a regular file means that the disk is full.
  error_ =
      fmt::format("{}: cannot write it: {}", path_, std::strerror(written < 0 ? errno : ENOSPC));
  if (::ftruncate(file_.get(), static_cast<off_t>(size_)) != 0)
    error_ += "; its last frame is cut off";
}

}  // namespace gdr::fabric
