#include "emu/run/channel.hpp"

#include <fcntl.h>
#include <sys/socket.h>

#include <cerrno>
#include <system_error>

namespace gdr::emu {

SocketPair socket_pair() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

Channel::Channel(UniqueFd end) : end_(std::move(end)) { fcntl(end_.get(), F_SETFL, O_NONBLOCK); }

void Channel::send(std::string_view text) {
  unsent_ += text;
  flush();
}

void Channel::flush() {
  while (!unsent_.empty()) {
    const ssize_t written = write(end_.get(), unsent_.data(), unsent_.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return;  // full, or QEMU has ended, which is noticed elsewhere
    unsent_.erase(0, static_cast<std::size_t>(written));
  }
}

void Channel::take() {
  char buffer[1U << 16U];
  constexpr std::size_t at_once = 4U << 20U;
  std::size_t taken = 0;
  for (ssize_t got = 1; open_ && got > 0 && taken < at_once;) {
    got = read(end_.get(), buffer, sizeof buffer);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) open_ = false;
    if (got <= 0) continue;
    waiting_.append(buffer, static_cast<std::size_t>(got));
    taken += static_cast<std::size_t>(got);
  }
}

}  // namespace gdr::emu
