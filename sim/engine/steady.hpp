#pragma once

#include <cstdint>
#include <vector>

namespace gdr::sim {

/// Finds the steady rate of a stream of arrivals. Arrivals are gathered in blocks of `block` bytes;
/// the rate is steady when three blocks in a row agree within `tolerance`, or when many blocks
/// agree less closely. A block must span whatever repeats (a window, a bounce buffer).
class SteadyRate {
 public:
  SteadyRate(std::uint64_t block, double tolerance) : block_(block), tolerance_(tolerance) {}

  /// `bytes` in all have arrived at `time` (seconds).
  void add(double time, std::uint64_t bytes);
  [[nodiscard]] bool steady() const { return steady_; }
  /// Bytes per second of the last blocks, or of what has arrived so far.
  [[nodiscard]] double rate() const { return rate_; }
  /// Forgets what it saw: something in the scenario changed.
  void restart(double time, std::uint64_t bytes);

 private:
  struct Mark {
    double time;
    std::uint64_t bytes;
  };
  std::uint64_t block_;
  double tolerance_;
  std::vector<Mark> marks_;
  bool steady_ = false;
  double rate_ = 0;
};

}  // namespace gdr::sim
