#include "emu/fabric/fabric.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <mutex>
#include <set>
#include <span>
#include <utility>

#include "emu/fabric/connection.hpp"
#include "emu/fabric/pcap.hpp"
#include "emu/fabric/switch_core.hpp"
#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace gdr::fabric {
namespace {

/// The source of an epoll event; the other bits of its data are the port.
enum class Source : std::uint64_t { wake, timer, listener, connection };

std::uint64_t tag(Source source, std::size_t port) {
  return (static_cast<std::uint64_t>(source) << 32U) | port;
}

UniqueFd made(int fd, std::string_view what) {
  if (fd < 0)
    throw InputError(fmt::format("fabric: cannot create {}: {}", what, std::strerror(errno)));
  return UniqueFd(fd);
}

std::uint64_t steady_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
}

void check_options(const FabricOptions& options) {
  std::set<std::string> names;
  for (const PortOptions& port : options.ports) {
    if (!names.insert(port.name).second)
      throw InputError(fmt::format("fabric: found two ports called \"{}\"; names must be unique",
                                   printable(port.name)));
    if (port.path.empty() == (port.fd < 0))
      throw InputError(fmt::format("fabric: port \"{}\": needs either a path or an open socket",
                                   printable(port.name)));
    if (port.path.empty() && ::fcntl(port.fd, F_GETFL) < 0)
      throw InputError(fmt::format("fabric: port \"{}\": file descriptor {} is not open",
                                   printable(port.name), port.fd));
  }
}

}  // namespace

class Fabric::Implementation {
 public:
  Implementation(const FabricOptions& options, std::vector<UniqueFd> sockets, FrameTap tap);

  void run_once(Duration at_most);
  void arm();
  void set_faults(const std::vector<PortOptions>& ports, Seed seed);
  void wake() const;
  [[nodiscard]] int event_fd() const { return epoll_.get(); }
  [[nodiscard]] FabricCounters counters() const;

 private:
  struct Port {
    std::string name;
    std::optional<Listener> listener;
    std::optional<Connection> connection;
    std::uint32_t watched = 0;  // events that epoll watches on the connection
    bool stalled = false;
    std::shared_ptr<std::uint64_t> buffered = std::make_shared<std::uint64_t>(0);
    std::uint64_t connections = 0;
    std::uint64_t refused = 0;
    std::uint64_t bad_streams = 0;
  };

  [[nodiscard]] Duration now() const {
    return {static_cast<double>(steady_ns() - start_ns_) * 1e-9};
  }
  void watch(int operation, int fd, std::uint32_t events, std::uint64_t what);
  void set_timer();
  void handle(const epoll_event& event);
  void connect(std::size_t port, UniqueFd socket);
  void disconnect(std::size_t port, Connection::State why);
  void accept(std::size_t port);
  void read(std::size_t port);
  void take(std::size_t port, Frame frame);
  bool give(std::size_t port, const Parcel& parcel);
  void write(std::size_t port);
  void look_for_stall(std::size_t port);
  void update_watch(std::size_t port);

  FabricOptions options_;
  FrameTap tap_;
  std::uint64_t start_ns_ = steady_ns();
  UniqueFd epoll_;
  UniqueFd timer_;
  UniqueFd wake_;
  mutable std::mutex mutex_;  // guards the members below
  SwitchCore core_;
  std::optional<PcapWriter> pcap_;
  std::vector<Port> ports_;
};

Fabric::Implementation::Implementation(const FabricOptions& options, std::vector<UniqueFd> sockets,
                                       FrameTap tap)
    : options_(options),
      tap_(std::move(tap)),
      epoll_(made(::epoll_create1(EPOLL_CLOEXEC), "an epoll")),
      timer_(made(::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC), "a timer")),
      wake_(made(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), "an event")),
      core_(options) {
  check_options(options);
  if (options.pcap) pcap_.emplace(*options.pcap, wall_clock_now());
  watch(EPOLL_CTL_ADD, timer_.get(), EPOLLIN, tag(Source::timer, 0));
  watch(EPOLL_CTL_ADD, wake_.get(), EPOLLIN, tag(Source::wake, 0));
  ports_.resize(options.ports.size());
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    ports_[i].name = options.ports[i].name;
    if (sockets[i].is_open()) {
      connect(i, std::move(sockets[i]));
      continue;
    }
    ports_[i].listener.emplace(options.ports[i].path);
    watch(EPOLL_CTL_ADD, ports_[i].listener->fd(), EPOLLIN, tag(Source::listener, i));
  }
}

void Fabric::Implementation::watch(int operation, int fd, std::uint32_t events,
                                   std::uint64_t what) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = what;
  check(::epoll_ctl(epoll_.get(), operation, fd, &event) == 0, "epoll refuses a socket");
}

void Fabric::Implementation::set_timer() {
  std::optional<Duration> next = core_.next_due();
  for (const Port& port : ports_) {
    if (!port.connection || !port.connection->wants_to_write() || port.stalled) continue;
    const Duration stall = port.connection->last_progress() + options_.stall_after;
    next = next ? std::min(*next, stall) : stall;
  }
  itimerspec when{};  // zero: never
  if (next) {
    // For longer times the timer expires after a day and is set again.
    const double ahead = std::clamp(next->seconds, 0.0, now().seconds + 86400.0);
    const std::uint64_t ns = start_ns_ + static_cast<std::uint64_t>(std::ceil(ahead * 1e9)) + 1;
    when.it_value.tv_sec = static_cast<time_t>(ns / 1'000'000'000);
    when.it_value.tv_nsec = static_cast<long>(ns % 1'000'000'000);
  }
  check(::timerfd_settime(timer_.get(), TFD_TIMER_ABSTIME, &when, nullptr) == 0,
        "timerfd refuses a time");
}

void Fabric::Implementation::run_once(Duration at_most) {
  std::array<epoll_event, 64> events{};
  const int limit_ms = static_cast<int>(std::ceil(std::clamp(at_most.seconds, 0.0, 86400.0) * 1e3));
  const int count =
      ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), limit_ms);
  check(count >= 0 || errno == EINTR, "epoll_wait failed");
  const std::lock_guard lock(mutex_);
  for (const epoll_event& event :
       std::span(events).first(static_cast<std::size_t>(std::max(count, 0))))
    handle(event);
  core_.advance(now(), [&](std::size_t port, const Parcel& parcel) { return give(port, parcel); });
  for (std::size_t i = 0; i < ports_.size(); ++i) write(i);
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    look_for_stall(i);
    update_watch(i);
  }
  set_timer();
}

void Fabric::Implementation::handle(const epoll_event& event) {
  const auto source = static_cast<Source>(event.data.u64 >> 32U);
  const std::size_t port = event.data.u64 & 0xffffffffU;
  if (source == Source::listener) {
    accept(port);
  } else if (source == Source::connection) {
    if ((event.events & EPOLLOUT) != 0) ports_[port].stalled = false;
    // epoll reports a hang-up even while the port is not read because its buffer is full; unread
    // data is lost then.
    const bool reads = (ports_[port].watched & EPOLLIN) != 0;
    if (reads) read(port);
    else if ((event.events & (EPOLLHUP | EPOLLERR)) != 0)
      disconnect(port, Connection::State::ended);
  } else {
    std::uint64_t times = 0;
    (void)!::read(source == Source::timer ? timer_.get() : wake_.get(), &times, sizeof times);
  }
}

void Fabric::Implementation::connect(std::size_t port, UniqueFd socket) {
  Port& to = ports_[port];
  to.connection.emplace(std::move(socket), now());
  to.stalled = false;
  to.watched = EPOLLIN;
  ++to.connections;
  core_.connect(port);
  watch(EPOLL_CTL_ADD, to.connection->fd(), to.watched, tag(Source::connection, port));
}

void Fabric::Implementation::disconnect(std::size_t port, Connection::State why) {
  Port& from = ports_[port];
  if (!from.connection) return;
  if (why == Connection::State::bad) ++from.bad_streams;
  for (const Parcel& parcel : from.connection->take_unwritten())
    core_.not_delivered(port, {parcel.frame->size()}, &Drops::unconnected);
  from.connection.reset();
  core_.disconnect(port);
}

void Fabric::Implementation::accept(std::size_t port) {
  Port& at = ports_[port];
  bool error = false;
  UniqueFd socket = at.listener->accept(error);
  // No file descriptors are left: stop watching, or epoll would wake up at once, for ever.
  if (error) watch(EPOLL_CTL_DEL, at.listener->fd(), 0, 0);
  if (error) ++at.refused;
  if (!socket.is_open()) return;
  // The previous connection may have ended without being noticed.
  while (at.connection && at.connection->peer_is_gone()) read(port);
  if (at.connection) ++at.refused;
  else connect(port, std::move(socket));
}

void Fabric::Implementation::read(std::size_t port) {
  if (!ports_[port].connection) return;
  const auto state =
      ports_[port].connection->read([&](Frame frame) { take(port, std::move(frame)); });
  if (state != Connection::State::open) disconnect(port, state);
}

void Fabric::Implementation::take(std::size_t port, Frame frame) {
  const std::uint64_t size = frame.size();
  const Duration time = now();
  if (pcap_ && options_.capture == CapturePoint::sent) pcap_->write(frame, time);
  if (tap_) tap_(ports_[port].name, TapPoint::sent, frame);
  *ports_[port].buffered += size;
  std::shared_ptr<const void> hold(
      nullptr, [size, buffered = ports_[port].buffered](const void*) { *buffered -= size; });
  core_.receive(port, {std::make_shared<const Frame>(std::move(frame)), std::move(hold)}, time);
}

bool Fabric::Implementation::give(std::size_t port, const Parcel& parcel) {
  Port& to = ports_[port];
  if (to.stalled) return false;
  if (pcap_ && options_.capture == CapturePoint::delivered) pcap_->write(*parcel.frame, now());
  if (tap_) tap_(to.name, TapPoint::delivered, *parcel.frame);
  to.connection->queue(parcel, now());
  return true;
}

void Fabric::Implementation::write(std::size_t port) {
  Port& to = ports_[port];
  if (!to.connection || !to.connection->wants_to_write()) return;
  if (to.connection->write(now()) != Connection::State::open)
    disconnect(port, Connection::State::ended);
}

void Fabric::Implementation::look_for_stall(std::size_t port) {
  Port& to = ports_[port];
  if (!to.connection || !to.connection->wants_to_write() || to.stalled) return;
  if (now() < to.connection->last_progress() + options_.stall_after) return;
  // A partly written frame stays, or the stream would lose its framing.
  for (const Parcel& parcel : to.connection->take_unwritten())
    core_.not_delivered(port, {parcel.frame->size()}, &Drops::stalled);
  to.stalled = true;
}

void Fabric::Implementation::update_watch(std::size_t port) {
  Port& of = ports_[port];
  if (!of.connection) return;
  // Hysteresis: reading resumes at half of the limit.
  const std::uint64_t limit =
      (of.watched & EPOLLIN) != 0 ? options_.buffer.count : options_.buffer.count / 2;
  std::uint32_t wanted = *of.buffered <= limit ? std::uint32_t{EPOLLIN} : 0U;
  if (of.connection->wants_to_write() || of.stalled) wanted |= EPOLLOUT;
  if (wanted != of.watched)
    watch(EPOLL_CTL_MOD, of.connection->fd(), wanted, tag(Source::connection, port));
  of.watched = wanted;
}

void Fabric::Implementation::arm() {
  const std::lock_guard lock(mutex_);
  core_.arm(now());
}

void Fabric::Implementation::set_faults(const std::vector<PortOptions>& ports, Seed seed) {
  const std::lock_guard lock(mutex_);
  core_.set_faults(ports, seed, now());
}

void Fabric::Implementation::wake() const {
  constexpr std::uint64_t one = 1;
  (void)!::write(wake_.get(), &one, sizeof one);
}

FabricCounters Fabric::Implementation::counters() const {
  const std::lock_guard lock(mutex_);
  FabricCounters counters;
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    PortCounters port = core_.counters(i);
    port.connections = ports_[i].connections;
    port.refused = ports_[i].refused;
    port.bad_streams = ports_[i].bad_streams;
    counters.ports.push_back(std::move(port));
  }
  if (pcap_) counters.pcap_error = pcap_->error();
  return counters;
}

Fabric::Fabric(const FabricOptions& options, FrameTap tap) {
  std::vector<UniqueFd> sockets;
  for (const PortOptions& port : options.ports) sockets.emplace_back(port.fd);
  implementation_ = std::make_unique<Implementation>(options, std::move(sockets), std::move(tap));
}

Fabric::Fabric(Fabric&&) noexcept = default;
Fabric& Fabric::operator=(Fabric&&) noexcept = default;
Fabric::~Fabric() = default;

void Fabric::run_until(const std::function<bool()>& stop) {
  while (!stop()) run_once({0.2});
}

void Fabric::run_once(Duration at_most) { implementation_->run_once(at_most); }
int Fabric::event_fd() const { return implementation_->event_fd(); }
void Fabric::arm() { implementation_->arm(); }
void Fabric::set_faults(const std::vector<PortOptions>& ports, Seed seed) {
  implementation_->set_faults(ports, seed);
}
void Fabric::wake() const { implementation_->wake(); }
FabricCounters Fabric::counters() const { return implementation_->counters(); }

}  // namespace gdr::fabric
