#include "emu/run/host_commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "emu/process/shell.hpp"
#include "emu/run/control_protocol.hpp"
#include "src/common/error.hpp"

namespace gdr::emu {

std::vector<std::optional<std::string>> commands_of(const HostCommands& commands,
                                                    const std::vector<std::string>& hosts) {
  if (commands.command.empty() && commands.on.empty())
    throw InputError(
        "COMMAND is missing: write it behind --, as in -- ibv_devices, or give each host its own "
        "with --on HOST COMMAND");
  std::vector<std::optional<std::string>> result(hosts.size());
  for (const auto& [host, line] : commands.on) {
    const auto found = std::find(hosts.begin(), hosts.end(), host);
    if (found == hosts.end())
      throw InputError(fmt::format("--on {}: there is no such host; hosts: {}", printable(host),
                                   fmt::join(hosts, ", ")));
    auto& command = result[static_cast<std::size_t>(found - hosts.begin())];
    if (command)
      throw InputError(fmt::format("--on {}: given twice; a host runs one command", host));
    command = line;
  }
  if (!commands.command.empty())
    for (auto& command : result)
      if (!command) command = shell_line(commands.command);
  for (const auto& command : result)
    if (command && command->size() > longest_command)
      throw InputError(fmt::format("COMMAND has {} bytes; allowed are {}: put it into a file",
                                   command->size(), longest_command));
  return result;
}

}  // namespace gdr::emu
