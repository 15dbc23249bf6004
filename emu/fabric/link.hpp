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

/// A frame that leaves a link, and when. (A time, no delay: sums of delays round, and equal times
/// must stay equal to keep the order.)
struct Delivery {
  FramePtr frame;
  Duration due;
};

/// One direction of a port: which frames get through, how changed and how late. It knows no clock
/// and no socket. The same seed, name and frames at the same times give the same deliveries;
/// chances do not depend on the times.
class Link {
 public:
  /// Bytes on the wire beside those of a frame (IEEE 802.3): preamble 8, check sequence 4, gap 12.
  /// Shorter frames are padded.
  static constexpr Bytes wire_overhead{24};
  static constexpr Bytes shortest_frame{60};

  Link(std::string_view name, const LinkOptions& options, Seed seed);

  /// The frame arrives at `now`, which is not before the previous one's. Gives none, one or two
  /// deliveries. The counters say what happened to it, except `passed`, which is the caller's.
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
  std::uint64_t frame_ = 0;      // frames that chances and counts see, so far
  std::uint64_t down_lost_ = 0;  // of these, those that the link being down took
  std::optional<Duration> down_since_;
  bool up_again_ = false;
  Duration busy_until_;
  std::deque<std::pair<Duration, Bytes>>
      waiting_;  // when they begin to leave, and their sizes; kept where the queue has a limit
  Bytes waiting_bytes_;
  std::vector<Duration> held_back_;  // when the frames that were held back are due
};

}  // namespace gdr::fabric
