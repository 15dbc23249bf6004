#include "emu/guests.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <memory>
#include <system_error>

#include "common/error.hpp"
#include "common/file.hpp"
#include "emu/console_lines.hpp"
#include "emu/process.hpp"

namespace gdr::emu {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(to == 1 ? "standard output" : "standard error");
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

/// Our end of one of a guest's channels, read by lines.
class Channel {
 public:
  Channel() {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) fail("socketpair");
    ours_ = UniqueFd(ends[0]);
    theirs_ = UniqueFd(ends[1]);
    fcntl(ours_.get(), F_SETFL, O_NONBLOCK);
  }

  [[nodiscard]] int fd() const { return open_ ? ours_.get() : -1; }
  [[nodiscard]] int far_end() const { return theirs_.get(); }
  void close_far_end() { theirs_.reset(); }
  void send(std::string_view text) const { (void)!write(ours_.get(), text.data(), text.size()); }

  /// Takes what has come and calls `line` for each line of it, without its end; at the end of all also for an unfinished one.
  template <typename Line>
  void read_lines(const Line& line) {
    char buffer[1U << 16U];
    for (ssize_t got = 1; open_ && got > 0;) {
      got = read(ours_.get(), buffer, sizeof buffer);
      if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) open_ = false;
      if (got > 0) waiting_.append(buffer, static_cast<std::size_t>(got));
    }
    std::size_t at = 0;
    for (std::size_t end = waiting_.find('\n'); end != std::string::npos; end = waiting_.find('\n', at)) {
      line(std::string_view(waiting_).substr(at, end - at));
      at = end + 1;
    }
    waiting_.erase(0, at);
    constexpr std::size_t longest = 1U << 20U;
    if (!waiting_.empty() && (!open_ || waiting_.size() > longest)) finish(line);
  }

  template <typename Line>
  void finish(const Line& line) {
    if (!waiting_.empty()) line(std::string_view(waiting_));
    waiting_.clear();
  }

 private:
  UniqueFd ours_;
  UniqueFd theirs_;
  std::string waiting_;
  bool open_ = true;
};

/// A guest that has been started.
class Guest {
 public:
  Guest(const GuestPlan& plan, const HostWiring& wiring) : plan_(plan), console_(plan.console_file), qemu_(start(plan, wiring, *this)) {
    for (Channel* channel : {&control, &output, &errors}) channel->close_far_end();
  }

  Channel control, output, errors;
  bool ready = false;              ///< waits for the others
  std::optional<int> exit_code{};  ///< of its command
  std::string failure{};           ///< what its init could not do

  [[nodiscard]] const std::string& host() const { return plan_.host; }
  [[nodiscard]] bool gone() { return qemu_.exit_code().has_value(); }

  void take_control() {
    control.read_lines([&](std::string_view line) {
      if (line == "ready") ready = true;
      else if (line.starts_with("exit ")) exit_code = std::stoi(std::string(line.substr(5)));
      else if (line.starts_with("failed ")) failure = line.substr(7);
    });
  }

  void pass_on(bool at_end) {
    const auto pass = [&](Channel& from, int to) {
      const auto line = [&](std::string_view text) { write_all(to, fmt::format("{}| {}\n", plan_.host, text)); };
      from.read_lines(line);
      if (at_end) from.finish(line);
    };
    pass(output, 1);
    pass(errors, 2);
    for (const std::string& line : console_.take()) write_all(2, fmt::format("gdr: {}: {}\n", plan_.host, line));
  }

  /// Why it is gone: the kernel's panic, or else the end of what it and QEMU said.
  std::string last_words() {
    const std::string console = read_file(plan_.console_file);
    if (const auto panic = console.find("Kernel panic"); panic != std::string::npos)
      return fmt::format("the guest's kernel gave up: {}",
                         printable(console.substr(panic, console.find_first_of("\r\n", panic) - panic), 200));
    constexpr std::size_t shown = 600;
    std::string end = console + read_file(plan_.console_file + ".qemu");
    if (end.size() > shown) end.erase(0, end.size() - shown);
    return fmt::format("QEMU ended with exit code {}; last it said: {}", *qemu_.exit_code(), printable(end, shown));
  }

 private:
  static Process start(const GuestPlan& plan, const HostWiring& wiring, const Guest& guest) {
    std::vector<std::string> arguments = plan.qemu;
    arguments.insert(arguments.end(), wiring.arguments.begin(), wiring.arguments.end());
    std::vector<int> pass{guest.control.far_end(), guest.output.far_end(), guest.errors.far_end()};
    for (const UniqueFd& descriptor : wiring.descriptors) pass.push_back(descriptor.get());
    write_file(plan.settings_file, plan.settings);
    write_file(plan.console_file, "");
    const std::string messages = plan.console_file + ".qemu";
    const UniqueFd log(open(messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (log.get() < 0) throw std::system_error(errno, std::generic_category(), messages);
    return {arguments, log.get(), pass};
  }

  const GuestPlan& plan_;
  ConsoleLines console_;
  Process qemu_;
};

class Run {
 public:
  Run(const std::vector<GuestPlan>& plans, std::vector<HostWiring> wiring, Duration timeout, Signals& signals)
      : signals_(signals),
        timeout_(timeout),
        end_(Clock::now() + std::chrono::milliseconds(std::llround(timeout.seconds * 1e3))) {
    for (std::size_t i = 0; i < plans.size(); ++i) guests_.push_back(std::make_unique<Guest>(plans[i], wiring[i]));
    // Cables are the QEMUs' alone now: when one of them goes, the other sees it.
  }

  Outcome run() {
    for (;;) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      if (left <= 0) return out_of_time();
      wait(static_cast<int>(std::min<std::int64_t>(left, 1000)));
      for (const auto& guest : guests_) {
        // A guest that is gone has sent all it had before.
        const bool gone = guest->gone();
        guest->take_control();
        guest->pass_on(gone || guest->exit_code);
        if (!guest->failure.empty()) return failed(*guest, guest->failure, false);
        if (guest->exit_code && *guest->exit_code != 0 && exit_code_ == 0) exit_code_ = *guest->exit_code;
        if (gone && !guest->exit_code) return failed(*guest, guest->last_words(), !started_);
      }
      const auto all = [&](const auto& holds) { return std::all_of(guests_.begin(), guests_.end(), holds); };
      if (all([](const auto& guest) { return guest->exit_code.has_value(); })) return {exit_code_, "", false};
      if (!started_ && all([](const auto& guest) { return guest->ready; })) start_commands();
    }
  }

 private:
  void start_commands() {
    started_ = true;
    for (const auto& guest : guests_) guest->control.send("go\n");
  }

  void wait(int limit_ms) {
    std::vector<pollfd> ready{{signals_.fd(), POLLIN, 0}};
    for (const auto& guest : guests_)
      for (const Channel* channel : {&guest->control, &guest->output, &guest->errors})
        ready.push_back({channel->fd(), POLLIN, 0});
    if (poll(ready.data(), ready.size(), limit_ms) < 0 && errno != EINTR) fail("poll");
    signals_.take();
  }

  static Outcome failed(const Guest& guest, const std::string& why, bool before_commands) {
    return {exit_emulation_failed, fmt::format("{}: {}", guest.host(), why), before_commands};
  }

  Outcome out_of_time() {
    std::vector<std::string> late;
    for (const auto& guest : guests_) {
      guest->pass_on(true);
      if (!guest->exit_code) late.push_back(guest->host());
    }
    return {exit_timeout,
            fmt::format("{}: {} after {} (--timeout): stopped", fmt::join(late, ", "), started_ ? "not finished" : "not up",
                        to_string(timeout_)),
            false};
  }

  Signals& signals_;
  Duration timeout_;
  Clock::time_point end_;
  std::vector<std::unique_ptr<Guest>> guests_;
  bool started_ = false;
  int exit_code_ = 0;
};

}  // namespace

Outcome run_guests(const std::vector<GuestPlan>& plans, std::vector<HostWiring> wiring, Duration timeout, Signals& signals) {
  return Run(plans, std::move(wiring), timeout, signals).run();
}

}  // namespace gdr::emu
