#include "sim/engine/steady.hpp"

#include <algorithm>
#include <cmath>

namespace gdr::sim {
namespace {

constexpr std::size_t settle_blocks = 24;

}  // namespace

void SteadyRate::add(double time, std::uint64_t bytes) {
  if (marks_.empty()) {
    marks_.push_back({time, bytes});
    return;
  }
  if (bytes - marks_.back().bytes < block_) return;
  marks_.push_back({time, bytes});
  const std::size_t n = marks_.size();
  const auto rate_of = [&](std::size_t from, std::size_t to) {
    return static_cast<double>(marks_[to].bytes - marks_[from].bytes) /
           (marks_[to].time - marks_[from].time);
  };
  rate_ = rate_of(n >= 3 ? n - 3 : 0, n - 1);  // the oldest block may hold the end of the start-up
  if (n < 4) return;
  const double a = rate_of(n - 4, n - 3);
  const double b = rate_of(n - 3, n - 2);
  const double c = rate_of(n - 2, n - 1);
  steady_ = std::max({a, b, c}) - std::min({a, b, c}) <= tolerance_ * b;
  if (steady_ || n < settle_blocks) return;
  // The pattern does not fit the blocks: accept two long halves that agree and, in the end, the
  // average.
  const double early = rate_of(n - settle_blocks, n - settle_blocks / 2);
  const double late = rate_of(n - settle_blocks / 2, n - 1);
  steady_ = std::abs(early - late) <= 20 * tolerance_ * late || n >= 4 * settle_blocks;
  rate_ = rate_of(n - settle_blocks, n - 1);
}

void SteadyRate::restart(double time, std::uint64_t bytes) {
  marks_.clear();
  steady_ = false;
  add(time, bytes);
}

}  // namespace gdr::sim
