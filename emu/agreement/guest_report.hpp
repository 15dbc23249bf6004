#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/agreement/observation.hpp"

namespace gdr::agreement {

/// What a guest runs, and what it prints.
struct GuestRun {
  std::string tool;       ///< path of `gdr`
  unsigned gpu = 0;       ///< N of /dev/gdr-gpuN
  unsigned nic = 0;       ///< N of rxeN
  std::string path;       ///< gdr, staged or tcp
  std::string operation;  ///< write, read or send
  Bytes size;
  std::string more;     ///< further options of `gdr transfer`, a shell line
  std::string server;   ///< its address; empty: this is the server
  std::string program;  ///< instead of `gdr transfer`: a shell command of somebody's own
};

/// A shell command: the module's counts, one transfer, the counts again. Fails as the transfer
/// does.
std::string guest_command(const GuestRun& run);

/// Whether a line of its output is the command's own, and not the program's.
bool is_report_line(std::string_view line);

/// What the command's output says.
struct GuestReport {
  std::optional<ProcessBytes> process;  ///< nothing: the program is no `gdr transfer`
  ModuleBytes module;
  std::string path;  ///< that the transport took; "" where nobody says
};
/// From the lines of standard output. Throws InputError that says what is missing in it.
GuestReport read_report(const std::vector<std::string>& lines, unsigned gpu);

}  // namespace gdr::agreement
