#pragma once

#include <cstddef>
#include <string>

namespace gdr::cli {

/// One line on standard error during a long run, if that is a terminal; else nothing. The line is
/// erased at the end.
class Progress {
 public:
  /// Prints "WHAT: DONE of TOTAL" after every `every` steps.
  Progress(std::string what, std::size_t total, std::size_t every = 1);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void step();

 private:
  void say() const;

  std::string what_;
  std::size_t total_;
  std::size_t every_;
  bool shown_;
  std::size_t done_ = 0;
};

}  // namespace gdr::cli
