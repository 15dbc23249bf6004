#pragma once

#include <string>

#include "emu/image/kernel_cache.hpp"
#include "emu/keep/daemon_protocol.hpp"
#include "emu/keep/session_name.hpp"
#include "emu/process/signals.hpp"
#include "src/common/units.hpp"

namespace gdr::emu {

/// How commands in kept guests ended.
struct ClientOutcome {
  int exit_code = 0;
  std::string error;     ///< a line for standard error; may be empty
  std::string counters;  ///< JSON, when they were asked for and all went well
};

/// Runs commands in the guests of a name, their output going to our standard output and error. At
/// the end of the time, and when a signal comes, the commands are stopped and the guests stay.
/// Throws InputError when the name is not up or the request is wrong.
ClientOutcome run_in(const SessionFiles& files, const std::string& name, const RunRequest& request,
                     Duration timeout, Signals& signals, const Say& say);

/// Ends the guests of a name and waits until they are gone. Returns a line that says what was done;
/// when the name is not up, that is no error. Throws InputError when they do not end, Interrupted.
std::string take_down(const SessionFiles& files, const std::string& name, Signals& signals);

/// Why the owner of a name ended by itself; empty when nothing is known.
std::string read_failure(const SessionFiles& files);

}  // namespace gdr::emu
