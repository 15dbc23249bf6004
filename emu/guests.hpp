#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/units.hpp"
#include "emu/guest_plan.hpp"
#include "emu/kernel_cache.hpp"
#include "emu/signals.hpp"
#include "emu/wiring.hpp"

namespace gdr::emu {

inline constexpr int exit_timeout = 124;
inline constexpr int exit_emulation_failed = 125;

/// How a run ended.
struct Outcome {
  int exit_code = 0;
  std::string error;             ///< a line for standard error; empty when all commands were run to their end
  bool before_commands = false;  ///< a QEMU ended before any command was started: another try may do
};

/// Starts a QEMU a plan, lets all commands start when all guests are up, and passes their output on, each line with the host's
/// name in front. The exit code is that of the first command to fail. All QEMUs are gone when this returns or throws. Throws
/// Interrupted.
Outcome run_guests(const std::vector<GuestPlan>& plans, std::vector<HostWiring> wiring, Duration timeout, Signals& signals);

}  // namespace gdr::emu
