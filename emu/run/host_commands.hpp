#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gdr::emu {

/// What hosts are to run, as the command line says it.
struct HostCommands {
  std::vector<std::string>
      command;  ///< COMMAND ARGUMENT...: for hosts that `on` does not name; empty: none
  std::vector<std::pair<std::string, std::string>> on;  ///< host and shell line
  bool operator==(const HostCommands&) const = default;
};

/// The shell command of each host; nullopt for one that runs nothing. Throws InputError: a host
/// that is not there or named twice, no command at all, one that is too long.
std::vector<std::optional<std::string>> commands_of(const HostCommands& commands,
                                                    const std::vector<std::string>& hosts);

}  // namespace gdr::emu
