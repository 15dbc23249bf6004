#include "emu/keep/daemon_client.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "emu/run/run_once.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"

namespace gdr::emu {
namespace {

constexpr Duration time_to_stop{30};

bool send_packet(int socket, char letter, const std::string& text) {
  const std::string packet = letter + text;
  return send(socket, packet.data(), packet.size(), MSG_NOSIGNAL) ==
         static_cast<ssize_t>(packet.size());
}

class Client {
 public:
  Client(UniqueFd socket, Duration timeout, Signals& signals, const Say& say)
      : socket_(std::move(socket)), deadline_(timeout), signals_(signals), say_(say) {}

  ClientOutcome run(const RunRequest& request) {
    const std::string text = encode(request);
    if (text.size() + 1 > longest_request)
      throw InputError("COMMAND is too long: put it into a script");
    if (!send_packet(socket_.get(), message::run, text)) return lost();
    while (!done_) {
      wait();
      if (!stopped_ && deadline_.passed()) stop(exit_timeout);
      if (stopped_ && stop_deadline_->passed())
        return {result_.exit_code, "the guests did not stop their command", ""};
    }
    return std::move(result_);
  }

 private:
  void wait() {
    pollfd fds[] = {{signals_.fd(), POLLIN, 0}, {socket_.get(), POLLIN, 0}};
    poll(fds, 2, stopped_ ? 1000 : deadline_.left_ms());
    try {
      signals_.take();
    } catch (const Interrupted& interrupted) {
      if (stopped_) throw;
      stop(128 + interrupted.signal);
    }
    while (!done_) {
      const auto packet = receive_packet(socket_.get());
      if (!packet) return;
      if (packet->empty()) finish(lost());
      else take(packet->front(), std::string_view(*packet).substr(1));
    }
  }

  void stop(int exit_code) {
    stopped_ = true;
    result_.exit_code = exit_code;
    stop_deadline_.emplace(time_to_stop);
    if (!send_packet(socket_.get(), message::stop, "")) finish(lost());
  }

  void take(char letter, std::string_view text) {
    switch (letter) {
      case message::output:
        return write_all(STDOUT_FILENO, text);
      case message::errors:
        return write_all(STDERR_FILENO, text);
      case message::say:
        return say_(std::string(text));
      case message::running:
        if (result_.exit_code != exit_timeout) return;
        result_.error = text.empty() ? deadline_.message({"COMMAND"}, "not started")
                                     : deadline_.message({std::string(text)}, "not finished");
        return;
      case message::counters:
        result_.counters += text;
        return;
      case message::refused:
        throw InputError(std::string(text));
      case message::broken:
        return finish({exit_emulation_failed, std::string(text), ""});
      case message::exit:
        if (!stopped_) std::from_chars(text.data(), text.data() + text.size(), result_.exit_code);
        done_ = true;
        return;
      default:
        return;
    }
  }

  void finish(ClientOutcome outcome) {
    result_ = std::move(outcome);
    done_ = true;
  }

  static ClientOutcome lost() {
    return {exit_emulation_failed, "the process that keeps the guests has ended", ""};
  }

  UniqueFd socket_;
  Deadline deadline_;
  Signals& signals_;
  const Say& say_;
  std::optional<Deadline> stop_deadline_{};
  ClientOutcome result_{};
  bool stopped_ = false;
  bool done_ = false;
};

}  // namespace

std::string read_failure(const SessionFiles& files) {
  std::error_code error;
  return std::filesystem::exists(files.failure, error) ? read_file(files.failure) : "";
}

ClientOutcome run_in(const SessionFiles& files, const std::string& name, const RunRequest& request,
                     Duration timeout, Signals& signals, const Say& say) {
  auto socket = connect_to(files.socket);
  if (!socket) {
    const std::string failure = read_failure(files);
    const bool dead = failure.empty() && access(files.lock.c_str(), F_OK) == 0 && !in_use(files);
    if (dead) clean_up(files);
    throw InputError(fmt::format("{} is not up{}; gdr emulate up {} TOPOLOGY starts it", name,
                                 !failure.empty() ? " any more: " + failure
                                 : dead ? " any more: the process that kept its guests was killed"
                                        : "",
                                 name));
  }
  return Client(std::move(*socket), timeout, signals, say).run(request);
}

std::string take_down(const SessionFiles& files, const std::string& name, Signals& signals) {
  const std::string failure = read_failure(files);
  const bool known = access(files.lock.c_str(), F_OK) == 0;
  if (!in_use(files)) {
    clean_up(files);
    if (!failure.empty()) return fmt::format("{} was not up any more: {}", name, failure);
    return known ? fmt::format(
                       "{} was not up any more: the process that kept its guests was killed", name)
                 : fmt::format("{} is not up", name);
  }
  auto socket = connect_to(files.socket);
  if (socket) send_packet(socket->get(), message::down, "");
  const Deadline deadline(time_to_stop);
  while (in_use(files)) {
    if (deadline.passed())
      throw InputError(fmt::format("{}: the process that keeps its guests does not end", name));
    constexpr int look_again_ms = 50;
    pollfd fd{signals.fd(), POLLIN, 0};
    poll(&fd, 1, look_again_ms);
    signals.take();
    if (socket || !in_use(files)) continue;
    socket = connect_to(files.socket);
    if (socket) send_packet(socket->get(), message::down, "");
  }
  return fmt::format("{} is down", name);
}

}  // namespace gdr::emu
