#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace gdr::emu {

/// Lines the commands of several hosts up. A host belongs to it from the start of its command to
/// the command's end. Plain state: each call returns the answers that are due.
class Barriers {
 public:
  struct Answer {
    std::size_t host = 0;
    std::string token;
    std::string failure;  ///< empty: go on
    bool operator==(const Answer&) const = default;
  };
  using Answers = std::vector<Answer>;

  Barriers() = default;
  /// `running[host]`: whether the host runs a command. `names` are for messages.
  Barriers(std::vector<std::string> names, const std::vector<bool>& running);

  /// A process of a host is there. All that wait go on when each host has one there; more than one
  /// of a host are let go together. When a host's command has ended already, nobody can be waited
  /// for: the process fails.
  Answers reached(std::size_t host, const std::string& token, const std::string& barrier);

  /// The command of a host has ended: whoever waits for it fails.
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
