#include "emu/run/session.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/common/check.hpp"

namespace gdr::emu {

std::vector<fabric::PortOptions> fabric_ports(const std::vector<GuestPlan>& guests) {
  std::vector<fabric::PortOptions> ports;
  for (const GuestPlan& guest : guests)
    for (const std::string& nic : guest.nics)
      ports.push_back({guest.host + "/" + nic, "", -1, {}, {}});
  return ports;
}

namespace {

/// The guests' ends of all sockets, by guest: management interface, NICs. Our ends go to the
/// switches, which own them.
std::vector<std::vector<UniqueFd>> connect(const std::vector<GuestPlan>& guests,
                                           fabric::FabricOptions& fabric,
                                           fabric::FabricOptions& management) {
  std::vector<std::vector<UniqueFd>> theirs(guests.size());
  std::size_t port = 0;
  for (std::size_t guest = 0; guest < guests.size(); ++guest) {
    SocketPair pair = socket_pair();
    management.ports.push_back({guests[guest].host + "/mgmt0", "", pair.ours.release(), {}, {}});
    theirs[guest].push_back(std::move(pair.theirs));
    for (std::size_t nic = 0; nic < guests[guest].nics.size(); ++nic) {
      pair = socket_pair();
      fabric.ports[port++].fd = pair.ours.release();
      theirs[guest].push_back(std::move(pair.theirs));
    }
  }
  return theirs;
}

}  // namespace

Session::Session(const SessionPlan& plan, Output output)
    : output_(std::move(output)), states_(plan.guests.size()) {
  fabric::FabricOptions fabric = plan.fabric;
  fabric.armed = false;
  fabric::FabricOptions management;
  auto sockets = connect(plan.guests, fabric, management);
  fabric_ = std::make_unique<SwitchThread>(fabric, plan.tap);
  management_ = std::make_unique<SwitchThread>(management);
  for (std::size_t i = 0; i < plan.guests.size(); ++i)
    guests_.push_back(std::make_unique<Guest>(plan.guests[i], std::move(sockets[i])));
}

void Session::wait_for(std::vector<pollfd>& fds, bool with_output) const {
  for (const auto& guest : guests_) {
    fds.push_back({guest->control_fd(), POLLIN, 0});
    if (!with_output) continue;
    for (const int fd : guest->output_fds()) fds.push_back({fd, POLLIN, 0});
  }
}

void Session::turn(bool with_output) {
  for (std::size_t i = 0; i < guests_.size() && failure_.empty(); ++i) {
    Guest& guest = *guests_[i];
    // Checked first: a guest that has ended sent all its output before that.
    const bool gone = guest.gone();
    guest.flush();
    const bool ran = states_[i] == State::running;
    guest.take_control([&](const GuestMessage& message) { take(i, message); });
    const bool ended = ran && states_[i] != State::running;
    if (with_output || ended || gone) pass_on(i, gone || ended);
    if (!gone || !failure_.empty()) continue;
    failure_ = fmt::format("{}: {}", guest.host(), guest.last_words());
    failed_early_ = !started_;
  }
}

void Session::take(std::size_t guest, const GuestMessage& message) {
  if (std::holds_alternative<GuestReady>(message)) {
    if (states_[guest] == State::starting) states_[guest] = State::ready;
  } else if (const auto* failed = std::get_if<GuestFailed>(&message)) {
    failure_ = fmt::format("{}: {}", guests_[guest]->host(), failed->why);
  } else if (const auto* ended = std::get_if<CommandEnded>(&message)) {
    if (states_[guest] != State::running) return;
    states_[guest] = State::ready;
    if (exit_code_ == 0) exit_code_ = ended->exit_code;
    answer(barriers_.ended(guest));
  } else if (const auto* barrier = std::get_if<BarrierReached>(&message)) {
    answer(barriers_.reached(guest, barrier->token, barrier->name));
  }
}

void Session::answer(const Barriers::Answers& answers) {
  for (const Barriers::Answer& answer : answers)
    guests_[answer.host]->send(barrier_message(answer.token, answer.failure));
}

void Session::pass_on(std::size_t guest, bool at_end) {
  guests_[guest]->take_output(at_end, [&](Stream stream, std::string_view line) {
    output_(guests_[guest]->host(), stream, line);
  });
}

void Session::take_rest() {
  for (std::size_t i = 0; i < guests_.size(); ++i) pass_on(i, true);
}

bool Session::ready() const {
  return std::all_of(states_.begin(), states_.end(),
                     [](State state) { return state == State::ready; });
}

void Session::run(const std::vector<std::optional<std::string>>& commands,
                  const std::string& folder) {
  check(ready() && commands.size() == guests_.size(), "commands run when all guests are ready");
  std::vector<bool> runs;
  for (const auto& command : commands) runs.push_back(command.has_value());
  barriers_ = Barriers(hosts(), runs);
  exit_code_ = 0;
  started_ = true;
  fabric_->arm();
  for (std::size_t i = 0; i < guests_.size(); ++i) {
    if (!commands[i]) continue;
    states_[i] = State::running;
    guests_[i]->send(run_message(*commands[i], folder));
  }
}

void Session::stop() {
  for (std::size_t i = 0; i < guests_.size(); ++i)
    if (states_[i] == State::running) guests_[i]->send(stop_message());
}

std::vector<std::string> Session::in_state(State state) const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < guests_.size(); ++i)
    if (states_[i] == state) names.push_back(guests_[i]->host());
  return names;
}

std::vector<std::string> Session::hosts() const {
  std::vector<std::string> names;
  for (const auto& guest : guests_) names.push_back(guest->host());
  return names;
}

}  // namespace gdr::emu
