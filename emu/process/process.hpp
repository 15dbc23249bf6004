#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "emu/process/signals.hpp"

namespace gdr::emu {

/// A child process in its own process group, killed with the group when this object is destroyed,
/// and by the kernel when we die.
class Process {
 public:
  /// `arguments[0]` is searched in PATH. Standard input is /dev/null, standard output and error are
  /// `output`. The child gets `pass` as its descriptors 3, 4... Throws std::system_error when it
  /// cannot be started.
  Process(const std::vector<std::string>& arguments, int output, std::vector<int> pass = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  /// Exit code, 128 + signal for a killed one; nullopt while it runs.
  std::optional<int> exit_code();

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

struct CommandResult {
  int exit_code = 0;
  std::string output;  ///< standard output and error
};

/// Runs a command to its end. Throws Interrupted (the command is killed) and std::system_error.
CommandResult run_to_end(const std::vector<std::string>& arguments, Signals& signals);

/// The same for a command that must succeed. Throws InputError with `purpose`, the command and the
/// end of its output.
std::string run_or_throw(const std::vector<std::string>& arguments, Signals& signals,
                         std::string_view purpose);

/// Whether a program is in PATH.
bool is_in_path(const std::string& program);

}  // namespace gdr::emu
