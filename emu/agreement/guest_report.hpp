#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/agreement/observation.hpp"

namespace gdr::agreement {

/// What a guest runs.
struct GuestRun {
  std::string tool;       ///< path of `gdr`
  unsigned gpu = 0;       ///< N of /dev/gdr-gpuN
  unsigned nic = 0;       ///< N of rxeN
  std::string path;       ///< gdr, staged or tcp
  std::string operation;  ///< write, read or send
  Bytes size;
  std::string more;     ///< further options of `gdr transfer`, a shell line
  std::string server;   ///< its address; empty: this is the server
  std::string program;  ///< instead of `gdr transfer`: the user's shell command
};

/// A shell command: prints the module's counts, does one transfer, prints the counts again. Its
/// exit code is the transfer's if that fails.
std::string guest_command(const GuestRun& run);

/// Whether a line of its output is from the command itself, not from the program.
bool is_report_line(std::string_view line);

/// The command's output, parsed.
struct GuestReport {
  std::optional<ProcessBytes> process;  ///< nullopt: the program is not `gdr transfer`
  ModuleBytes module;
  std::string path;  ///< that the transport took; "" if not reported
};
/// Parses the lines of standard output. Throws InputError naming what is missing.
GuestReport read_report(const std::vector<std::string>& lines, unsigned gpu);

}  // namespace gdr::agreement
