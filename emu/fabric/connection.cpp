#include "emu/fabric/connection.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <utility>

#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace gdr::fabric {
namespace {

constexpr std::size_t read_chunk = std::size_t{64} << 10U;
constexpr int chunks_per_read = 4;
constexpr std::size_t frames_a_write = 32;

bool try_again() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

Listener::Listener(const std::string& path) : path_(path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    throw InputError(fmt::format("socket \"{}\": found {} bytes, allowed are 1 to {}",
                                 printable(path), path.size(), sizeof address.sun_path - 1));
  std::copy(path.begin(), path.end(), address.sun_path);
  UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) throw InputError(fmt::format("socket {}: {}", path, std::strerror(errno)));
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const char* reason = errno == EADDRINUSE
                             ? "it already exists; another run uses it or left it behind"
                             : std::strerror(errno);
    throw InputError(fmt::format("socket {}: cannot create it: {}", path, reason));
  }
  // From here on this object must remove the path.
  if (::listen(socket.get(), 4) != 0) {
    const int reason = errno;
    ::unlink(path.c_str());
    throw InputError(fmt::format("socket {}: cannot listen: {}", path, std::strerror(reason)));
  }
  socket_ = std::move(socket);
}

Listener::Listener(Listener&& other) noexcept
    : path_(std::move(other.path_)), socket_(std::move(other.socket_)) {}

Listener::~Listener() {
  if (socket_.is_open()) ::unlink(path_.c_str());
}

UniqueFd Listener::accept(bool& error) {
  UniqueFd socket(::accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  error = !socket.is_open() && !try_again() && errno != ECONNABORTED;
  return socket;
}

Connection::Connection(UniqueFd socket, Duration now)
    : socket_(std::move(socket)), last_progress_(now) {
  const int flags = ::fcntl(socket_.get(), F_GETFL);
  check(flags >= 0 && ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK) == 0,
        "a connection without an open socket");
  ::fcntl(socket_.get(), F_SETFD, FD_CLOEXEC);
}

Connection::State Connection::read(const std::function<void(Frame)>& take) {
  std::array<std::uint8_t, read_chunk>
      chunk;  // NOLINT(cppcoreguidelines-pro-type-member-init): 64 KiB that recv fills
  for (int i = 0; i < chunks_per_read; ++i) {
    const ssize_t count = ::recv(socket_.get(), chunk.data(), chunk.size(), 0);
    if (count < 0 && try_again()) return State::open;
    if (count <= 0) return decoder_.mid_frame() ? State::bad : State::ended;
    decoder_.feed(std::span(chunk).first(static_cast<std::size_t>(count)));
    while (auto frame = decoder_.next()) take(std::move(*frame));
    if (decoder_.bad()) return State::bad;
    if (static_cast<std::size_t>(count) < chunk.size()) return State::open;
  }
  return State::open;
}

bool Connection::peer_is_gone() const {
  pollfd poll{socket_.get(), 0, 0};
  return ::poll(&poll, 1, 0) == 1 && (poll.revents & (POLLHUP | POLLERR)) != 0;
}

void Connection::queue(const Parcel& parcel, Duration now) {
  if (out_.empty()) last_progress_ = now;
  out_.push_back(parcel);
}

Connection::State Connection::write(Duration now) {
  while (!out_.empty()) {
    std::array<std::array<std::uint8_t, length_bytes>, frames_a_write> prefixes{};
    std::array<iovec, 2 * frames_a_write> parts{};
    const std::size_t frames = std::min(out_.size(), frames_a_write);
    std::size_t offered = 0;
    for (std::size_t i = 0; i < frames; ++i) {
      const Frame& frame = *out_[i].frame;
      prefixes.at(i) = length_prefix(frame);
      parts.at(2 * i) = {prefixes.at(i).data(), length_bytes};
      parts.at(2 * i + 1) = {const_cast<std::uint8_t*>(frame.data()), frame.size()};
      offered += length_bytes + frame.size();
    }
    for (std::size_t skip = written_, i = 0; skip > 0; ++i) {
      const std::size_t part = std::min(skip, parts.at(i).iov_len);
      parts.at(i).iov_base = static_cast<std::uint8_t*>(parts.at(i).iov_base) + part;
      parts.at(i).iov_len -= part;
      skip -= part;
    }
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = 2 * frames;
    const ssize_t count = ::sendmsg(socket_.get(), &message, MSG_NOSIGNAL);
    if (count < 0) return try_again() ? State::open : State::ended;
    last_progress_ = now;
    const std::size_t wanted = offered - written_;
    written_ += static_cast<std::size_t>(count);
    while (!out_.empty() && written_ >= length_bytes + out_.front().frame->size()) {
      written_ -= length_bytes + out_.front().frame->size();
      out_.pop_front();
    }
    if (static_cast<std::size_t>(count) < wanted) return State::open;
  }
  return State::open;
}

std::deque<Parcel> Connection::take_unwritten() {
  std::deque<Parcel> rest;
  const auto begun = static_cast<std::ptrdiff_t>(written_ > 0 ? 1 : 0);
  if (out_.empty()) return rest;
  std::move(out_.begin() + begun, out_.end(), std::back_inserter(rest));
  out_.erase(out_.begin() + begun, out_.end());
  return rest;
}

}  // namespace gdr::fabric
