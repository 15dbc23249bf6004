#include "src/transport/lanes/byte_stream.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <rdma/rsocket.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "src/common/error.hpp"

namespace gdr::transport {
namespace {

/// The socket calls, of the kernel or of librdmacm.
struct Calls {
  int (*socket)(int, int, int);
  int (*bind)(int, const sockaddr*, socklen_t);
  int (*listen)(int, int);
  int (*accept)(int, sockaddr*, socklen_t*);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*close)(int);
  int (*shutdown)(int, int);
  ssize_t (*send)(int, const void*, std::size_t, int);
  ssize_t (*recv)(int, void*, std::size_t, int);
  int (*getsockname)(int, sockaddr*, socklen_t*);
  int (*getpeername)(int, sockaddr*, socklen_t*);
  int (*setsockopt)(int, int, int, const void*, socklen_t);
  int (*fcntl)(int, int, ...);
  int (*poll)(pollfd*, nfds_t, int);
  const char* name;
};

const Calls& calls_of(SetUp by) {
  static constexpr Calls tcp{::socket,      ::bind,       ::listen, ::accept, ::connect,
                             ::close,       ::shutdown,   ::send,   ::recv,   ::getsockname,
                             ::getpeername, ::setsockopt, ::fcntl,  ::poll,   "TCP"};
  static constexpr Calls cm{rsocket,      rbind,       rlisten, raccept, rconnect,
                            rclose,       rshutdown,   rsend,   rrecv,   rgetsockname,
                            rgetpeername, rsetsockopt, rfcntl,  rpoll,   "rdma_cm"};
  return by == SetUp::tcp ? tcp : cm;
}

using Clock = std::chrono::steady_clock;
int milliseconds_until(Clock::time_point end) {
  return static_cast<int>(std::max<std::int64_t>(
      0, std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count()));
}
Clock::time_point in(Duration span) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(span.seconds));
}

class Socket {
 public:
  Socket(const Calls& calls, int fd) : calls_(&calls), fd_(fd) {}
  Socket(Socket&& other) noexcept : calls_(other.calls_), fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket() {
    if (fd_ >= 0) calls_->close(fd_);
  }
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] const Calls& calls() const { return *calls_; }

 private:
  const Calls* calls_;
  int fd_;
};

std::string describe(const sockaddr_storage& address, socklen_t length) {
  std::array<char, 128> host{};
  std::array<char, 16> port{};
  if (getnameinfo(reinterpret_cast<const sockaddr*>(&address), length, host.data(), host.size(),
                  port.data(), port.size(), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
    return "the peer";
  return fmt::format("{}:{}", host.data(), port.data());
}

class SocketStream final : public ByteStream {
 public:
  SocketStream(Socket socket, std::string peer)
      : socket_(std::move(socket)), peer_(std::move(peer)) {
    const Calls& calls = socket_.calls();
    calls.fcntl(socket_.fd(), F_SETFL, O_NONBLOCK);
    const int on = 1;
    calls.setsockopt(socket_.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (&calls != &calls_of(SetUp::tcp)) return;
    const int milliseconds = 10000;
    const int seconds = 3;
    setsockopt(socket_.fd(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
    setsockopt(socket_.fd(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    setsockopt(socket_.fd(), IPPROTO_TCP, TCP_KEEPIDLE, &seconds, sizeof(seconds));
    setsockopt(socket_.fd(), IPPROTO_TCP, TCP_KEEPINTVL, &seconds, sizeof(seconds));
  }

  Result<std::size_t> write_some(std::span<const std::byte> bytes) override {
    if (bytes.empty()) return std::size_t{0};
    return result_of(
        socket_.calls().send(socket_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
        false);
  }
  Result<std::size_t> read_some(std::span<std::byte> bytes) override {
    if (bytes.empty()) return std::size_t{0};
    return result_of(socket_.calls().recv(socket_.fd(), bytes.data(), bytes.size(), MSG_DONTWAIT),
                     true);
  }
  void end_writing() override { socket_.calls().shutdown(socket_.fd(), SHUT_WR); }
  [[nodiscard]] std::string peer() const override { return peer_; }

 private:
  [[nodiscard]] Result<std::size_t> result_of(ssize_t count, bool read) const {
    if (count > 0) return static_cast<std::size_t>(count);
    if (count == 0 && read)
      return Status(Cause::peer_gone, fmt::format("{} closed the connection", peer_));
    if (count == 0 || errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)
      return std::size_t{0};
    return Status(Cause::peer_gone,
                  fmt::format("the connection to {} broke: {}", peer_, std::strerror(errno)));
  }
  Socket socket_;
  std::string peer_;
};

class SocketListener final : public Listener {
 public:
  SocketListener(SetUp by, std::uint16_t port)
      : socket_(calls_of(by), calls_of(by).socket(AF_INET, SOCK_STREAM, 0)) {
    const Calls& calls = socket_.calls();
    const int on = 1;
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    socklen_t length = sizeof(address);
    if (socket_.fd() < 0 ||
        calls.setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        calls.bind(socket_.fd(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
        calls.listen(socket_.fd(), 64) != 0)
      throw InputError(
          fmt::format("port {}: cannot listen by {}: {}", port, calls.name, std::strerror(errno)));
    calls.getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &length);
    port_ = ntohs(address.sin_port);
  }

  [[nodiscard]] std::uint16_t port() const override { return port_; }

  Result<std::unique_ptr<ByteStream>> accept(Duration limit) override {
    const Calls& calls = socket_.calls();
    const auto end = in(limit);
    pollfd waiting = {socket_.fd(), POLLIN, 0};
    while (calls.poll(&waiting, 1, milliseconds_until(end)) <= 0)
      if (milliseconds_until(end) == 0)
        return Status(Cause::timed_out, fmt::format("nobody connected to port {} within {}", port_,
                                                    to_string(limit)));
    sockaddr_storage address = {};
    socklen_t length = sizeof(address);
    Socket accepted(calls,
                    calls.accept(socket_.fd(), reinterpret_cast<sockaddr*>(&address), &length));
    if (accepted.fd() < 0)
      return Status(Cause::peer_gone,
                    fmt::format("port {}: a connection broke: {}", port_, std::strerror(errno)));
    return std::unique_ptr<ByteStream>(
        new SocketStream(std::move(accepted), describe(address, length)));
  }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

/// One try, to one address. Status ok: connected.
Status try_connect(const Socket& socket, const addrinfo& to, Clock::time_point end) {
  const Calls& calls = socket.calls();
  calls.fcntl(socket.fd(), F_SETFL, O_NONBLOCK);
  if (calls.connect(socket.fd(), to.ai_addr, to.ai_addrlen) == 0) return {};
  if (errno != EINPROGRESS) return {Cause::peer_gone, std::strerror(errno)};
  pollfd waiting = {socket.fd(), POLLOUT, 0};
  if (calls.poll(&waiting, 1, milliseconds_until(end)) <= 0) return {Cause::timed_out, "no answer"};
  sockaddr_storage peer = {};
  socklen_t length = sizeof(peer);
  if (calls.getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&peer), &length) == 0 &&
      (waiting.revents & (POLLERR | POLLHUP)) == 0)
    return {};
  return {Cause::peer_gone, "nobody listens there"};
}

}  // namespace

std::unique_ptr<Listener> listen(SetUp by, std::uint16_t port) {
  return std::make_unique<SocketListener>(by, port);
}

Result<std::unique_ptr<ByteStream>> connect(SetUp by, const std::string& host, std::uint16_t port,
                                            Duration limit) {
  const Calls& calls = calls_of(by);
  const auto end = in(limit);
  addrinfo hints = {};
  hints.ai_family = AF_INET;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (error != 0)
    return Status(Cause::invalid, fmt::format("host {}: {}", printable(host), gai_strerror(error)));
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> addresses(found, freeaddrinfo);
  Status last;
  do {
    Socket socket(calls, calls.socket(AF_INET, SOCK_STREAM, 0));
    if (socket.fd() < 0)
      return Status(Cause::device_failed,
                    fmt::format("no socket by {}: {}", calls.name, std::strerror(errno)));
    last = try_connect(socket, *addresses, end);
    if (last.ok()) {
      sockaddr_storage address = {};
      std::memcpy(&address, addresses->ai_addr, addresses->ai_addrlen);
      return std::unique_ptr<ByteStream>(
          new SocketStream(std::move(socket), describe(address, addresses->ai_addrlen)));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(std::min(50, milliseconds_until(end))));
  } while (milliseconds_until(end) > 0);
  return Status(Cause::timed_out, fmt::format("{}:{} by {}: not connected within {}: {}", host,
                                              port, calls.name, to_string(limit), last.text()));
}

std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> stream_pair() {
  std::array<int, 2> fds{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) != 0)
    throw InputError(fmt::format("no pair of sockets: {}", std::strerror(errno)));
  const Calls& tcp = calls_of(SetUp::tcp);
  return {std::make_unique<SocketStream>(Socket(tcp, fds[0]), "the other end"),
          std::make_unique<SocketStream>(Socket(tcp, fds[1]), "the other end")};
}

}  // namespace gdr::transport
