#include "emu/run/run_once.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <system_error>

namespace gdr::emu {

using Clock = std::chrono::steady_clock;

Deadline::Deadline(Duration timeout)
    : timeout_(timeout),
      end_(Clock::now() + std::chrono::milliseconds(std::llround(timeout.seconds * 1e3))) {}

bool Deadline::passed() const { return Clock::now() >= end_; }

int Deadline::left_ms() const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1000));
}

std::string Deadline::message(const std::vector<std::string>& hosts,
                              const std::string& what) const {
  return fmt::format("{}: {} after {} (--timeout): stopped", fmt::join(hosts, ", "), what,
                     to_string(timeout_));
}

void turn_until(Session& session, Signals& signals, const Deadline& deadline,
                const std::function<bool()>& done) {
  while (!done() && session.failure().empty() && !deadline.passed()) {
    std::vector<pollfd> fds{{signals.fd(), POLLIN, 0}};
    session.wait_for(fds);
    if (poll(fds.data(), fds.size(), deadline.left_ms()) < 0 && errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "poll");
    signals.take();
    session.turn();
  }
}

ExitReport run_guests(const SessionPlan& plan,
                      const std::vector<std::optional<std::string>>& commands,
                      const std::string& folder, Duration timeout, Signals& signals,
                      const Session::Output& output) {
  const Deadline deadline(timeout);
  Session session(plan, output);
  const auto failed = [&] {
    return ExitReport{exit_emulation_failed, session.failure(), session.failed_early(),
                      session.counters()};
  };
  turn_until(session, signals, deadline, [&] { return session.ready(); });
  if (!session.failure().empty()) return failed();
  if (!session.ready())
    return {exit_timeout, deadline.message(session.not_ready(), "not up"), false,
            session.counters()};
  session.run(commands, folder);
  turn_until(session, signals, deadline, [&] { return session.running().empty(); });
  if (!session.failure().empty()) return failed();
  session.take_rest();
  const auto late = session.running();
  if (!late.empty())
    return {exit_timeout, deadline.message(late, "not finished"), false, session.counters()};
  return {session.exit_code(), "", false, session.counters()};
}

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0)
      throw std::system_error(errno, std::generic_category(),
                              to == STDOUT_FILENO ? "standard output" : "standard error");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void print_line(const std::string& host, Stream stream, std::string_view line) {
  write_all(stream == Stream::output ? STDOUT_FILENO : STDERR_FILENO,
            fmt::format("{}| {}\n", host, line));
}

}  // namespace gdr::emu
