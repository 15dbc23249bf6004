#pragma once

#include <deque>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "emu/fabric/counters.hpp"
#include "emu/fabric/frame.hpp"
#include "emu/fabric/options.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// A frame and the time at which it leaves a link. Not a delay: sums of delays are rounded, and
/// equal times must stay equal to keep the order.
struct Delivery {
  FramePtr frame;
  Duration due;
};

/// One direction of a port: decides which frames pass, how they change and when they leave. It uses
/// no clock and no socket. The same seed, name and frames at the same times give the same
/// deliveries; random choices do not depend on the times.
class Link {
 public:
  /// Overhead of a frame on the wire (IEEE 802.3): preamble 8 bytes, check sequence 4, gap 12.
  /// Shorter frames are padded.
  static constexpr Bytes wire_overhead{24};
  static constexpr Bytes shortest_frame{60};

  Link(std::string_view name, const LinkOptions& options, Seed seed);

  /// Handles a frame that arrives at `now`, not earlier than the previous one. Returns up to two
  /// deliveries. Updates all counters except `passed`, which the caller updates.
  std::vector<Delivery> pass(const FramePtr& frame, Duration now);

  [[nodiscard]] const DirectionCounters& counters() const { return counters_; }
  [[nodiscard]] DirectionCounters& counters() { return counters_; }

 private:
  [[nodiscard]] bool is_down(Duration now);
  [[nodiscard]] bool queue_is_full(Bytes frame, Duration now);
  /// When a frame that arrives at `now` begins to leave.
  [[nodiscard]] Duration start_of(Duration now) const;
  /// When the last bit of a frame that arrives at `now` has left.
  Duration send(Bytes frame, Duration now);
  FramePtr change(const FramePtr& frame);
  void note_overtaking(Duration due, Duration now);

  LinkOptions options_;
  RandomNumbers random_;
  DirectionCounters counters_;
  std::uint64_t frame_ = 0;      // frames so far that random choices and counts apply to
  std::uint64_t down_lost_ = 0;  // those of them lost while the link was down
  std::optional<Duration> down_since_;
  bool up_again_ = false;
  Duration busy_until_;
  std::deque<std::pair<Duration, Bytes>>
      waiting_;  // start time and size of queued frames; used only if the queue has a limit
  Bytes waiting_bytes_;
  std::vector<Duration> held_back_;  // due times of the frames held back
};

}  // namespace gdr::fabric
