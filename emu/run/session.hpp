#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/fabric/fabric.hpp"
#include "emu/fabric/options.hpp"
#include "emu/machine/guest_plan.hpp"
#include "emu/run/barriers.hpp"
#include "emu/run/guest.hpp"
#include "emu/run/switch_thread.hpp"

namespace gdr::emu {

/// Everything that is known before guests start.
struct SessionPlan {
  std::vector<GuestPlan> guests;
  /// One port per NIC, in the order of guests and their nics. Sockets are made with the guests.
  fabric::FabricOptions fabric;
  fabric::FrameTap tap;  ///< called with every frame of the fabric; may be empty
};

/// The ports of the fabric: HOST/NIC, hosts and NICs in the order of the plans.
std::vector<fabric::PortOptions> fabric_ports(const std::vector<GuestPlan>& guests);

/// Guests and the switches that join them, from their start to their end: commands are run in them
/// one after another. Driven by the caller's poll loop: wait_for() adds what to wait for, turn()
/// does what can be done. The destructor ends all QEMUs.
class Session {
 public:
  /// Called with each line of a guest's output.
  using Output = std::function<void(const std::string& host, Stream stream, std::string_view line)>;

  /// Starts one QEMU per guest. Throws InputError, std::system_error.
  Session(const SessionPlan& plan, Output output);

  /// Adds what to wait for. With with_output=false the guests' output is not read; a guest blocks
  /// when its channel is full.
  void wait_for(std::vector<pollfd>& fds, bool with_output = true) const;
  void turn(bool with_output = true);

  /// All guests are up, and none runs a command.
  [[nodiscard]] bool ready() const;
  /// Hosts that are not up yet.
  [[nodiscard]] std::vector<std::string> not_ready() const { return in_state(State::starting); }
  /// Why a guest cannot continue, as a sentence; the other guests are then useless, too.
  [[nodiscard]] const std::string& failure() const { return failure_; }
  /// With failure(): a QEMU ended before any command started, so a retry may work.
  [[nodiscard]] bool failed_early() const { return failed_early_; }

  /// Runs each host's shell command in `folder`; hosts with nullopt run nothing. All guests must be
  /// ready. The fabric's faults take effect with the first commands.
  void run(const std::vector<std::optional<std::string>>& commands, const std::string& folder);
  /// Sets the faults of the fabric's links from now on; ports as from fabric_ports().
  void set_faults(const std::vector<fabric::PortOptions>& ports, fabric::Seed seed) {
    fabric_->set_faults(ports, seed);
  }
  /// Ends the commands that run.
  void stop();
  /// Hosts whose command has not ended.
  [[nodiscard]] std::vector<std::string> running() const { return in_state(State::running); }
  /// Passes on unfinished lines.
  void take_rest();
  /// That of the first command of run() to fail; 0 if none failed.
  [[nodiscard]] int exit_code() const { return exit_code_; }

  [[nodiscard]] std::vector<std::string> hosts() const;
  [[nodiscard]] fabric::FabricCounters counters() const { return fabric_->counters(); }

 private:
  enum class State { starting, ready, running };
  [[nodiscard]] std::vector<std::string> in_state(State state) const;
  void take(std::size_t guest, const GuestMessage& message);
  void answer(const Barriers::Answers& answers);
  void pass_on(std::size_t guest, bool at_end);

  Output output_;
  std::unique_ptr<SwitchThread> fabric_;
  std::unique_ptr<SwitchThread> management_;
  std::vector<std::unique_ptr<Guest>> guests_;
  std::vector<State> states_;
  Barriers barriers_;
  std::string failure_;
  bool failed_early_ = false;
  bool started_ = false;  // a command has been run
  int exit_code_ = 0;
};

}  // namespace gdr::emu
