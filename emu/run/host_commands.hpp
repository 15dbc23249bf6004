#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace gdr::emu {

/// The commands for the hosts, from the command line.
struct HostCommands {
  std::vector<std::string>
      command;  ///< COMMAND ARGUMENT...: for hosts that `on` does not name; empty: none
  std::vector<std::pair<std::string, std::string>> on;  ///< host and shell line
  bool operator==(const HostCommands&) const = default;
};

/// The shell command of each host; nullopt for a host that runs nothing. Throws InputError for an
/// unknown host or one named twice, no command at all, or one that is too long.
std::vector<std::optional<std::string>> commands_of(const HostCommands& commands,
                                                    const std::vector<std::string>& hosts);

}  // namespace gdr::emu
