#pragma once

#include <memory>
#include <vector>

#include "src/transport/lanes/rc_lane.hpp"
#include "src/transport/lanes/stream_lane.hpp"

namespace gdr::transport {

/// The lanes of a connection: its queue pairs, in the order both sides agreed on, and the stream.
/// With path tcp there are no queue pairs and the stream carries everything. Empty until the
/// handshake is done.
class LaneSet {
 public:
  static constexpr std::size_t stream_index = ~std::size_t{0};

  void open(std::vector<std::unique_ptr<RcLane>> queue_pairs, std::unique_ptr<StreamLane> stream) {
    queue_pairs_ = std::move(queue_pairs);
    stream_ = std::move(stream);
  }
  [[nodiscard]] bool opened() const { return stream_ != nullptr; }

  [[nodiscard]] std::size_t queue_pairs() const { return queue_pairs_.size(); }
  [[nodiscard]] RcLane& queue_pair(std::size_t index) const { return *queue_pairs_[index]; }
  /// The stream when `index` says so, or when there are no queue pairs.
  [[nodiscard]] Lane& at(std::size_t index) const {
    if (index == stream_index || queue_pairs_.empty()) return *stream_;
    return *queue_pairs_[index];
  }
  [[nodiscard]] bool is_stream(const Lane& lane) const { return &lane == stream_.get(); }
  [[nodiscard]] const RcLane* find(const Lane& lane) const;

  /// Pieces take the queue pairs round-robin.
  [[nodiscard]] std::size_t next() const { return next_; }
  void advance() {
    if (++next_ >= queue_pairs_.size()) next_ = 0;
  }

  bool poll_stream(LaneListener& listener) { return stream_->poll(listener); }
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool stream_drained() const { return stream_->drained(); }

  /// Destroys the queue pairs: afterwards no NIC touches any buffer. The lanes themselves stay,
  /// since the caller may be inside one of them; call drop_queue_pairs when no caller is.
  void shut_queue_pairs();
  void drop_queue_pairs() { queue_pairs_.clear(); }
  /// Sends `last` over the stream, and nothing after it. Call `close_stream` until it returns true.
  void end_stream(const Frame& last, const std::string& text);
  /// Writes what is left. When all is written, or if `late`, closes the stream and returns true.
  bool close_stream(bool late);

  /// Payload of data frames that went through the socket, up to its end.
  [[nodiscard]] Bytes socket_sent() const { return stream_ ? stream_->data_sent() : sent_; }
  [[nodiscard]] Bytes socket_received() const {
    return stream_ ? stream_->data_received() : received_;
  }

 private:
  std::vector<std::unique_ptr<RcLane>> queue_pairs_;
  std::unique_ptr<StreamLane> stream_;
  std::size_t next_ = 0;
  Bytes sent_;
  Bytes received_;
};

}  // namespace gdr::transport
