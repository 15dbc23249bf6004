#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gdr::emu {

/// Barriers between the commands of several hosts. A host takes part from the start to the end of
/// its command. Plain state: each call returns the answers that are due.
class Barriers {
 public:
  struct Answer {
    std::size_t host = 0;
    std::string token;
    std::string failure;  ///< empty: continue
    bool operator==(const Answer&) const = default;
  };
  using Answers = std::vector<Answer>;

  Barriers() = default;
  /// `running[host]`: whether the host runs a command. `names` are for messages.
  Barriers(std::vector<std::string> names, const std::vector<bool>& running);

  /// A process of a host has arrived. All that wait continue when each host has one there; several
  /// of one host continue together. If a host's command has already ended, it will never arrive:
  /// the process fails.
  Answers reached(std::size_t host, const std::string& token, const std::string& barrier);

  /// The command of a host has ended: processes that wait for the host fail.
  Answers ended(std::size_t host);

 private:
  enum class State { none, runs, has_ended };
  struct Waiting {
    std::size_t host = 0;
    std::string token;
  };

  std::vector<std::string> names_;
  std::vector<State> states_;
  std::map<std::string, std::vector<Waiting>> waiting_;  // by barrier
};

}  // namespace gdr::emu
