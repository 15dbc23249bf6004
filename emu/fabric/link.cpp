#include "emu/fabric/link.hpp"

#include <algorithm>
#include <utility>

namespace gdr::fabric {
namespace {

/// The purposes of a frame's random numbers. They identify the streams: changing one changes every
/// run.
enum Purpose : std::uint64_t { lose, duplicate, hold_back, corrupt, corrupt_where, mark };

Bytes size_of(const Frame& frame) { return {frame.size()}; }

}  // namespace

Link::Link(std::string_view name, const LinkOptions& options, Seed seed)
    : options_(options), random_(seed, name) {}

bool Link::is_down(Duration now) {
  if (up_again_) return false;
  if (!down_since_) {
    if (options_.down_after == frame_) down_since_ = now;
    if (options_.down_at && now >= *options_.down_at) down_since_ = *options_.down_at;
    if (!down_since_) return false;
  }
  const bool time_is_over = options_.down_for && now >= *down_since_ + *options_.down_for;
  const bool frames_are_over = options_.down_frames && down_lost_ >= *options_.down_frames;
  up_again_ = time_is_over || frames_are_over;
  return !up_again_;
}

bool Link::queue_is_full(Bytes frame, Duration now) {
  if (!options_.queue) return false;
  while (!waiting_.empty() && waiting_.front().first <= now) {
    waiting_bytes_.count -= waiting_.front().second.count;
    waiting_.pop_front();
  }
  const bool waits = start_of(now) > now;
  return waits && waiting_bytes_ + frame > *options_.queue;
}

Duration Link::start_of(Duration now) const {
  const Duration start = std::max(now, busy_until_);
  if (options_.pause_at && start >= *options_.pause_at)
    return std::max(start, *options_.pause_at + options_.pause_for);
  return start;
}

Duration Link::send(Bytes frame, Duration now) {
  const Duration start = start_of(now);
  if (options_.queue && start > now) {
    waiting_.emplace_back(start, frame);
    waiting_bytes_ = waiting_bytes_ + frame;
  }
  busy_until_ = start;
  if (options_.rate)
    busy_until_ += (std::max(frame, shortest_frame) + wire_overhead) / *options_.rate;
  return busy_until_;
}

FramePtr Link::change(const FramePtr& frame) {
  const bool corrupts = random_.chance(frame_, corrupt, options_.corrupt);
  const bool marks = random_.chance(frame_, mark, options_.mark);
  if (!corrupts && !marks) return frame;
  auto changed = std::make_shared<Frame>(*frame);
  if (marks && mark_congestion(*changed)) ++counters_.marked;
  if (corrupts && corrupt_payload(*changed, random_.at(frame_, corrupt_where)))
    ++counters_.corrupted;
  return changed;
}

void Link::note_overtaking(Duration due, Duration now) {
  const auto settled = std::remove_if(held_back_.begin(), held_back_.end(), [&](Duration held) {
    if (due < held) ++counters_.reordered;
    return due < held || held <= now;
  });
  held_back_.erase(settled, held_back_.end());
}

std::vector<Delivery> Link::pass(const FramePtr& frame, Duration now) {
  counters_.arrived.add(size_of(*frame));
  const bool counts = !options_.roce_only || parse_roce(*frame).has_value();
  const bool down = is_down(now);
  std::vector<Delivery> deliveries;
  if (down) {
    ++counters_.dropped.down;
    if (counts) ++down_lost_;
  } else if (counts && random_.chance(frame_, lose, options_.loss)) {
    ++counters_.dropped.loss;
  } else if (queue_is_full(size_of(*frame), now)) {
    ++counters_.dropped.queue;
  } else {
    const bool late = counts && random_.chance(frame_, hold_back, options_.reorder);
    const Duration extra = late ? options_.delay + options_.reorder_by : options_.delay;
    const Duration due = send(size_of(*frame), now) + extra;
    note_overtaking(due, now);
    if (late) held_back_.push_back(due);
    deliveries.push_back({counts ? change(frame) : frame, due});
    // The copy takes time on the wire but is not dropped at a full queue, since the link made it.
    if (counts && random_.chance(frame_, duplicate, options_.duplicate)) {
      ++counters_.duplicated;
      deliveries.push_back({deliveries.front().frame, send(size_of(*frame), now) + extra});
    }
  }
  if (counts) ++frame_;
  return deliveries;
}

}  // namespace gdr::fabric
