#pragma once

#include "src/common/unique_fd.hpp"

namespace gdr::emu {

/// Ctrl-C, SIGTERM or SIGHUP. Not an error: it unwinds the stack, so that nothing is left behind.
struct Interrupted {
  int signal = 0;
};

/// Blocks SIGINT, SIGTERM, SIGHUP and SIGCHLD while it lives, so that they are read as data and
/// interrupt nothing. SIGPIPE is ignored. At most one object exists at a time.
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
