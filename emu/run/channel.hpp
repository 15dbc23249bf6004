#pragma once

#include <string>
#include <string_view>

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// The ends of a stream socket without a name.
struct SocketPair {
  UniqueFd ours;
  UniqueFd theirs;
};
/// Throws std::system_error.
SocketPair socket_pair();

/// Our end of one of a guest's channels, read line by line.
class Channel {
 public:
  explicit Channel(UniqueFd end);

  /// -1 when the other end is closed; poll() ignores it.
  [[nodiscard]] int fd() const { return open_ ? end_.get() : -1; }
  /// What does not fit into the socket waits for the next send() or flush().
  void send(std::string_view text);
  void flush();

  /// Takes what has come and calls `line` for each line, without its line break; when the other end
  /// has closed, also for an unfinished one.
  template <typename Line>
  void read_lines(const Line& line) {
    take();
    std::size_t at = 0;
    for (std::size_t end = waiting_.find('\n'); end != std::string::npos;
         end = waiting_.find('\n', at)) {
      line(std::string_view(waiting_).substr(at, end - at));
      at = end + 1;
    }
    waiting_.erase(0, at);
    constexpr std::size_t longest = 1U << 20U;
    if (!open_ || waiting_.size() > longest) finish(line);
  }

  /// An unfinished line counts as one.
  template <typename Line>
  void finish(const Line& line) {
    if (!waiting_.empty()) line(std::string_view(waiting_));
    waiting_.clear();
  }

 private:
  void take();

  UniqueFd end_;
  std::string waiting_;
  std::string unsent_;
  bool open_ = true;
};

}  // namespace gdr::emu
