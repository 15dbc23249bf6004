#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace gdr::sim {

/// Simulated time and links that transfers share max-min: all that the engine needs from SimGrid,
/// and the only file that uses it. SimGrid has one engine per process, so a process has at most one
/// Fluid (a second one is a bug and ends the program).
class Fluid {
 public:
  /// `done` is called with a transfer's token when it ends.
  explicit Fluid(std::function<void(std::uint64_t token)> done);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// A link by its number in the pool.
  using Link = std::uint32_t;
  [[nodiscard]] static std::size_t links();
  /// Units per second; only while nothing runs.
  void set_capacity(Link link, double units_per_second);

  /// Starts a transfer of `units` over links; one that is listed twice is used twice. `units` > 0.
  void start(const std::vector<Link>& over, double units, std::uint64_t token);
  /// Calls `action` after that many seconds (at once when not positive).
  void after(double seconds, std::function<void()> action);
  /// Seconds of simulated time since the process began.
  [[nodiscard]] double now() const;
  /// Runs until nothing is under way.
  void run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gdr::sim
