#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

namespace gdr::emu {

// Messages on a guest's control channel, one per line. emu/guest/start is the other side.

struct GuestReady {
  bool operator==(const GuestReady&) const = default;
};
/// The guest could not start.
struct GuestFailed {
  std::string why;
  bool operator==(const GuestFailed&) const = default;
};
/// The command that was run has ended.
struct CommandEnded {
  int exit_code = 0;
  bool operator==(const CommandEnded&) const = default;
};
/// A process of the guest waits for an answer under this token.
struct BarrierReached {
  std::string token;
  std::string name;
  bool operator==(const BarrierReached&) const = default;
};
using GuestMessage = std::variant<GuestReady, GuestFailed, CommandEnded, BarrierReached>;

/// nullopt for a line that is not a message.
std::optional<GuestMessage> parse_guest_message(std::string_view line);

/// Runs a shell command in a folder of the guest.
std::string run_message(const std::string& command, const std::string& folder);
/// Ends the running command, if any, with its whole session.
std::string stop_message();
/// Lets a process continue; with a reason, which is one line, the process fails.
std::string barrier_message(const std::string& token, const std::string& failure);

/// A command longer than this does not fit into one argument of a shell.
inline constexpr std::size_t longest_command = 100'000;

}  // namespace gdr::emu
