#include "src/transport/connection/lane_set.hpp"

#include <algorithm>

namespace gdr::transport {

const RcLane* LaneSet::find(const Lane& lane) const {
  const auto found = std::find_if(queue_pairs_.begin(), queue_pairs_.end(),
                                  [&](const auto& known) { return known.get() == &lane; });
  return found == queue_pairs_.end() ? nullptr : found->get();
}

bool LaneSet::drained() const {
  return (stream_ == nullptr || stream_->drained()) &&
         std::all_of(queue_pairs_.begin(), queue_pairs_.end(),
                     [](const auto& lane) { return lane->drained(); });
}

void LaneSet::shut_queue_pairs() {
  for (const auto& lane : queue_pairs_) lane->shut();
}

void LaneSet::end_stream(const Frame& last, const std::string& text) {
  stream_->end(last, put_text(text));
}

bool LaneSet::close_stream(bool late) {
  if (stream_ == nullptr) return true;
  if (!stream_->ended() && !late) return false;
  sent_ = stream_->data_sent();
  received_ = stream_->data_received();
  stream_.reset();
  return true;
}

}  // namespace gdr::transport
