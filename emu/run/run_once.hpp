#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "emu/process/signals.hpp"
#include "emu/run/session.hpp"
#include "src/common/units.hpp"

namespace gdr::emu {

inline constexpr int exit_timeout = 124;
inline constexpr int exit_emulation_failed = 125;

/// How a run ended.
struct ExitReport {
  int exit_code = 0;
  std::string error;  ///< a line for standard error; empty when all commands ran to their end
  bool before_commands = false;  ///< a QEMU ended before any command started: a retry may work
  fabric::FabricCounters counters{};
};

/// The moment at which a --timeout expires.
class Deadline {
 public:
  explicit Deadline(Duration timeout);
  [[nodiscard]] bool passed() const;
  /// For poll(); at most one second.
  [[nodiscard]] int left_ms() const;
  /// "h0, h1: not finished after 5min (--timeout): stopped"
  [[nodiscard]] std::string message(const std::vector<std::string>& hosts,
                                    const std::string& what) const;

 private:
  Duration timeout_;
  std::chrono::steady_clock::time_point end_;
};

/// Runs the session's loop until `done`, a guest fails, or the time is up. Throws Interrupted.
void turn_until(Session& session, Signals& signals, const Deadline& deadline,
                const std::function<bool()>& done);

/// Starts the guests, lets all commands start when all guests are up, and hands their output on.
/// The exit code is that of the first command to fail. All QEMUs have ended when this returns or
/// throws. Throws Interrupted.
ExitReport run_guests(const SessionPlan& plan,
                      const std::vector<std::optional<std::string>>& commands,
                      const std::string& folder, Duration timeout, Signals& signals,
                      const Session::Output& output);

/// Writes all of it to standard output or error. Throws std::system_error.
void write_all(int to, std::string_view text);

/// Prints a guest's line on our standard output or error, after the host's name.
void print_line(const std::string& host, Stream stream, std::string_view line);

}  // namespace gdr::emu
