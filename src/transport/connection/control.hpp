#pragma once

#include <deque>
#include <vector>

#include "src/transport/connection/lane_set.hpp"

namespace gdr::transport {

/// Frames that carry no data, kept until their lane has room. Those for one lane stay in order.
class Control {
 public:
  explicit Control(LaneSet& lanes) : lanes_(lanes) {}
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  /// `lane` as LaneSet::at takes it.
  void add(const Frame& frame, std::vector<std::byte> payload = {}, std::size_t lane = 0) {
    waiting_.push_back({frame, std::move(payload), lane});
  }
  /// The answer to an operation of the peer; `extra` is the old value of an atomic.
  void add_done(std::uint64_t operation, const Status& status, std::uint64_t extra = 0);
  /// Passes as many frames to the lanes as they have room for; false if none.
  bool send();
  [[nodiscard]] bool empty() const { return waiting_.empty(); }
  void clear() { waiting_.clear(); }

 private:
  struct Waiting {
    Frame frame;
    std::vector<std::byte> payload;
    std::size_t lane;
  };
  LaneSet& lanes_;
  std::deque<Waiting> waiting_;
};

}  // namespace gdr::transport
