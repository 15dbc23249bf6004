#pragma once

#include <string>

#include "emu/image/kernel_cache.hpp"
#include "emu/keep/daemon_protocol.hpp"
#include "emu/keep/session_name.hpp"
#include "emu/process/signals.hpp"
#include "src/common/units.hpp"

namespace gdr::emu {

/// How commands in the guests of a daemon ended.
struct ClientOutcome {
  int exit_code = 0;
  std::string error;     ///< one line for standard error; may be empty
  std::string counters;  ///< JSON, if requested and the commands ended normally
};

/// Runs commands in the guests of a name and copies their output to our standard output and error.
/// After `timeout` or on a signal the commands are stopped and the guests stay up. Throws
/// InputError when the name is not up or the request is invalid.
ClientOutcome run_in(const SessionFiles& files, const std::string& name, const RunRequest& request,
                     Duration timeout, Signals& signals, const Say& say);

/// Ends the guests of a name and waits until they have ended. Returns a line that says what was
/// done; a name that is not up is not an error. Throws InputError when they do not end,
/// Interrupted.
std::string take_down(const SessionFiles& files, const std::string& name, Signals& signals);

/// Why the daemon of a name ended by itself; empty if unknown.
std::string read_failure(const SessionFiles& files);

}  // namespace gdr::emu
