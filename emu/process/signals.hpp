#pragma once

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// Ctrl-C, SIGTERM or SIGHUP. Not an error: whoever catches it has been unwound, so that nothing is
/// left behind.
struct Interrupted {
  int signal = 0;
};

/// Holds SIGINT, SIGTERM, SIGHUP and SIGCHLD back while it lives, so that they come as data and not
/// in the middle of things. SIGPIPE is ignored. One at a time.
class Signals {
 public:
  Signals();
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  /// Readable when a signal is waiting.
  [[nodiscard]] int fd() const { return fd_.get(); }
  /// Takes the waiting signals. Throws Interrupted when one of them ends the program.
  void take();

 private:
  UniqueFd fd_;
};

}  // namespace gdr::emu
