#include "emu/keep/daemon.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "emu/fabric/fault_spec.hpp"
#include "src/common/error.hpp"
#include "src/common/json.hpp"

namespace gdr::emu {

using Clock = std::chrono::steady_clock;
constexpr auto time_to_stop = std::chrono::seconds(20);

Keeper::Keeper(const SessionPlan& plan, const UniqueFd& listener, Signals& signals, Say say)
    : plan_(plan), listener_(listener), signals_(signals), say_(std::move(say)) {}

void Keeper::start() {
  session_.reset();  // end the old QEMUs first
  session_ = std::make_unique<Session>(
      plan_, [this](const std::string& host, Stream stream, std::string_view line) {
        if (active_ == nullptr) return;
        active_->out.put(stream == Stream::output ? message::output : message::errors,
                         fmt::format("{}| {}\n", host, line));
      });
}

Outcome Keeper::serve(Duration boot_timeout, const std::function<void()>& on_ready) {
  const Deadline boot(boot_timeout);
  bool is_ready = false;
  bool again = false;
  start();
  while (!down_) {
    wait(1000);
    session_->turn(takes_output());
    if (!session_->failure().empty()) {
      if (is_ready || again || !session_->failed_early()) return failed(session_->failure());
      again = true;
      say_(session_->failure());
      say_("starting the guests once more");
      start();
    }
    if (stop_by_ && Clock::now() > *stop_by_)
      return failed(
          fmt::format("{}: does not stop its command", fmt::join(session_->running(), ", ")));
    if (!is_ready && session_->ready()) {
      is_ready = true;
      on_ready();
    }
    if (!is_ready && boot.passed())
      return {exit_timeout, boot.message(session_->not_ready(), "not up"), false};
    if (active_ != nullptr && session_->running().empty()) finish_active();
    if (active_ == nullptr && session_->ready()) run_next();
    flush();
  }
  return {};
}

void Keeper::wait(int limit_ms) {
  std::vector<pollfd> fds{{signals_.fd(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
  for (const Client& client : clients_)
    fds.push_back({client.socket.get(),
                   static_cast<short>(client.out.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  session_->wait_for(fds, takes_output());
  if (poll(fds.data(), fds.size(), limit_ms) < 0 && errno != EINTR)
    throw std::system_error(errno, std::generic_category(), "poll");
  signals_.take();
  if (fds[1].revents != 0) accept();
  for (Client& client : clients_) read(client);
}

void Keeper::accept() {
  UniqueFd socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (socket.get() >= 0) clients_.push_back({std::move(socket)});
}

void Keeper::read(Client& client) {
  while (!client.gone && !client.closing) {
    const auto packet = receive_packet(client.socket.get());
    if (!packet) return;
    if (packet->empty()) client.gone = true;
    else obey(client, *packet);
  }
}

void Keeper::obey(Client& client, const std::string& packet) {
  const std::string_view text = std::string_view(packet).substr(1);
  const auto refuse = [&](const std::string& why) {
    client.out.put(message::refused, why);
    client.closing = true;
  };
  switch (packet.front()) {
    case message::run:
      client.request = decode_run_request(text);
      if (!client.request)
        return refuse("not understood: do the guests run under another version of gdr?");
      try {
        commands_of(client.request->commands, session_->hosts());
        (void)faults_of(*client.request);
      } catch (const InputError& error) {
        return refuse(error.what());
      }
      if (active_ != nullptr)
        client.out.put(message::say, "another command runs in these guests: waiting for its end");
      return;
    case message::stop:
      return stop(client);
    case message::down:
      down_ = true;
      return;
    default:
      return refuse("unknown request");
  }
}

void Keeper::stop(Client& client) {
  std::string late;
  if (&client == active_) {
    late = fmt::format("{}", fmt::join(session_->running(), ", "));
    session_->stop();
    stop_by_ = Clock::now() + time_to_stop;
  }
  client.out.put(message::running, late);
  if (&client == active_) return;
  client.out.put(message::exit, "0");
  client.closing = true;
}

/// The fabric's ports with the faults of a request.
std::vector<fabric::PortOptions> Keeper::faults_of(const RunRequest& request) const {
  std::vector<fabric::PortOptions> ports = plan_.fabric.ports;
  for (fabric::PortOptions& port : ports) port.tx = port.rx = {};
  if (!request.faults.empty()) fabric::apply_faults(request.faults, ports);
  return ports;
}

void Keeper::begin_faults(const RunRequest& request) {
  if (request.faults.empty()) return;
  session_->set_faults(faults_of(request), {request.seed});
  own_faults_ = true;
}

void Keeper::end_faults() {
  if (own_faults_) session_->set_faults(plan_.fabric.ports, plan_.fabric.seed);
  own_faults_ = false;
}

void Keeper::run_next() {
  const auto next = std::find_if(clients_.begin(), clients_.end(), [](const Client& client) {
    return client.request && !client.closing && !client.gone;
  });
  if (next == clients_.end()) return;
  active_ = &*next;
  begin_faults(*next->request);
  session_->run(commands_of(next->request->commands, session_->hosts()), next->request->folder);
}

void Keeper::finish_active() {
  stop_by_.reset();
  end_faults();
  if (active_->request->counters)
    active_->out.put(message::counters, json::dump(to_json(session_->counters())));
  active_->out.put(message::exit, std::to_string(session_->exit_code()));
  active_->closing = true;
  active_ = nullptr;
}

void Keeper::flush() {
  for (Client& client : clients_) {
    if (!client.out.flush(client.socket.get())) client.gone = true;
    if (client.closing && client.out.empty()) client.gone = true;
    if (!client.gone || &client != active_) continue;
    // The client has disconnected: stop its command.
    session_->stop();
    end_faults();
    stop_by_ = Clock::now() + time_to_stop;
    active_ = nullptr;
  }
  clients_.remove_if([](const Client& client) { return client.gone; });
  if (active_ == nullptr && session_->running().empty()) stop_by_.reset();
}

Outcome Keeper::failed(const std::string& why) {
  for (Client& client : clients_) {
    if (client.request) client.out.put(message::broken, why);
    client.out.flush(client.socket.get());
  }
  return {exit_emulation_failed, why, false};
}

void Keeper::end(const std::function<void()>& before_closing) {
  session_.reset();
  before_closing();
  clients_.clear();
}

}  // namespace gdr::emu
