#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

#include "emu/run/host_commands.hpp"

namespace gdr::emu {

/// What a client asks the daemon to run.
struct RunRequest {
  HostCommands commands;
  std::string folder;      ///< where the commands run
  bool counters = false;   ///< return the fabric's counters at the end
  std::string faults{};    ///< faults of the fabric's links while the commands run; empty: those of
                           ///< the session
  std::uint64_t seed = 1;  ///< seed of these faults
  bool operator==(const RunRequest&) const = default;
};

/// A message is one packet of a SOCK_SEQPACKET socket: a letter and text.
namespace message {
// From client to daemon.
inline constexpr char run = 'r';   // a RunRequest
inline constexpr char stop = 's';  // ends the commands; their exit codes still come
inline constexpr char down =
    'd';  // ends the guests and the daemon; the connection closes when that is done
// From daemon to client.
inline constexpr char output = 'o';    // for standard output
inline constexpr char errors = 'e';    // for standard error
inline constexpr char say = 'm';       // a line about the guests, for standard error
inline constexpr char running = 'l';   // answer to stop: hosts whose command had not ended
inline constexpr char counters = 'c';  // JSON, possibly in parts
inline constexpr char refused = 'f';   // the request is invalid; text is the reason
inline constexpr char broken = 'b';    // a guest failed; text is the reason
inline constexpr char exit = 'x';      // all commands have ended; text is the exit code
}  // namespace message

/// Longer texts are split into packets of this size.
inline constexpr std::size_t packet_size = 32U << 10U;

/// Longer requests are not sent.
inline constexpr std::size_t longest_request = 150'000;

/// The texts must not contain NUL, like program arguments.
std::string encode(const RunRequest& request);
/// nullopt when the text is not a request.
std::optional<RunRequest> decode_run_request(std::string_view text);

/// Packets that wait to be sent.
class Outbox {
 public:
  void put(char letter, std::string_view text);
  /// Sends as much as it can without blocking. False: the other side has closed.
  bool flush(int socket);
  [[nodiscard]] bool empty() const { return packets_.empty(); }
  /// True if callers should not add packets for now.
  [[nodiscard]] bool full() const { return packets_.size() > 64; }

 private:
  std::deque<std::string> packets_;
};

/// Receives one packet without blocking; "" when the other side has closed, nullopt if there is
/// none yet.
std::optional<std::string> receive_packet(int socket);

}  // namespace gdr::emu
