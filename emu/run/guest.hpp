#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/machine/guest_plan.hpp"
#include "emu/process/process.hpp"
#include "emu/run/channel.hpp"
#include "emu/run/console_lines.hpp"
#include "emu/run/control_protocol.hpp"

namespace gdr::emu {

enum class Stream { output, errors };

/// A guest that has been started: its QEMU and our ends of its channels.
class Guest {
 public:
  /// `network` are the sockets of the management interface and of the NICs, in the order of their
  /// descriptors. Throws std::system_error, InputError when a file cannot be written.
  Guest(const GuestPlan& plan, std::vector<UniqueFd> network);

  [[nodiscard]] const std::string& host() const { return plan_.host; }
  /// Whether QEMU has ended.
  [[nodiscard]] bool gone() { return qemu_->exit_code().has_value(); }
  /// Why it ended: the kernel's panic, or else the last output of the guest and QEMU.
  std::string last_words();

  void send(std::string_view text) { control_.send(text); }
  void flush() { control_.flush(); }
  /// Calls `message` for each message on the control channel.
  void take_control(const std::function<void(const GuestMessage&)>& message);
  /// Calls `line` for each line of output that came; `at_end` also for an unfinished one. Messages
  /// of our modules in the guest are passed on, too, as errors that begin with "gdr: ".
  void take_output(bool at_end, const std::function<void(Stream, std::string_view)>& line);

  [[nodiscard]] int control_fd() const { return control_.fd(); }
  [[nodiscard]] std::vector<int> output_fds() const { return {output_.fd(), errors_.fd()}; }

 private:
  Guest(const GuestPlan& plan, std::vector<UniqueFd> network, SocketPair control, SocketPair output,
        SocketPair errors);

  const GuestPlan plan_;
  Channel control_, output_, errors_;
  ConsoleLines console_;
  std::optional<Process> qemu_;
};

}  // namespace gdr::emu
