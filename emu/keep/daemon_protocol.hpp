#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "emu/run/host_commands.hpp"

namespace gdr::emu {

/// What a client asks the process that keeps guests to run.
struct RunRequest {
  HostCommands commands;
  std::string folder;      ///< where the commands run
  bool counters = false;   ///< of the fabric, when the commands have ended
  std::string faults{};    ///< of the fabric's links while the commands run; empty: those that the
                           ///< guests were started with
  std::uint64_t seed = 1;  ///< of these
  bool operator==(const RunRequest&) const = default;
};

/// A message is one packet of a SOCK_SEQPACKET socket: a letter and text.
namespace message {
// To the daemon.
inline constexpr char run = 'r';   // a RunRequest
inline constexpr char stop = 's';  // ends the commands; their exit codes still come
inline constexpr char down = 'd';  // ends everything; the connection is closed when that is done
// From the daemon.
inline constexpr char output = 'o';    // for standard output
inline constexpr char errors = 'e';    // for standard error
inline constexpr char say = 'm';       // a line about the guests, for standard error
inline constexpr char running = 'l';   // answer to stop: hosts whose command had not ended
inline constexpr char counters = 'c';  // JSON, may come in parts
inline constexpr char refused = 'f';   // the request is wrong; text is why
inline constexpr char broken = 'b';    // a guest failed; text is why
inline constexpr char exit = 'x';      // all commands have ended; text is the exit code
}  // namespace message

/// Parts of a longer text go into packets of this size.
inline constexpr std::size_t packet_size = 32U << 10U;

/// A request longer than this is not sent.
inline constexpr std::size_t longest_request = 150'000;

/// Of text without NUL, as an argument of a program is.
std::string encode(const RunRequest& request);
/// nullopt when the text is no request.
std::optional<RunRequest> decode_run_request(std::string_view text);

/// Packets that wait until the other side takes them.
class Outbox {
 public:
  void put(char letter, std::string_view text);
  /// Sends what can be sent without waiting. False: the other side is gone.
  bool flush(int socket);
  [[nodiscard]] bool empty() const { return packets_.empty(); }
  /// So much waits that nothing more should be put in for now.
  [[nodiscard]] bool full() const { return packets_.size() > 64; }

 private:
  std::deque<std::string> packets_;
};

/// One packet; "" when the other side has closed, nullopt when there is none yet. Does not wait.
std::optional<std::string> receive_packet(int socket);

}  // namespace gdr::emu
