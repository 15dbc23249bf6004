#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "src/transport/lanes/lane.hpp"

namespace gdr::transport {

/// Frames over a stream: the control lane of every connection, and the only lane of the tcp path.
class StreamLane final : public Lane {
 public:
  StreamLane(std::unique_ptr<ByteStream> stream, Bytes chunk, unsigned depth);

  std::optional<Room> acquire(bool control) override;
  void send(unsigned slot, const Frame& frame) override;
  void abandon(unsigned slot) override { free_.push_back(slot); }
  std::span<const std::byte> received(unsigned slot) const override { return receives_[slot]; }
  void release(unsigned slot) override { free_receives_.push_back(slot); }
  bool poll(LaneListener& listener) override;
  [[nodiscard]] bool drained() const override { return sending_.empty(); }
  /// Ends input, and drops what has not begun to leave, except `last`. May be called by the
  /// listener.
  void end(const Frame& last, std::span<const std::byte> payload);
  /// Writes what is left and discards what comes; true when that is done. If the peer may still be
  /// sending data, or is to learn of a failure, that is when the peer has closed its end: a socket
  /// closed earlier discards unsent data.
  bool ended();
  /// Payload bytes of data frames that were handed to, and taken from, the stream.
  [[nodiscard]] Bytes data_sent() const { return data_sent_; }
  [[nodiscard]] Bytes data_received() const { return data_received_; }

 private:
  bool write();
  bool read(LaneListener& listener);
  /// Reads until `wanted` bytes of `into` are filled. False: not yet, or broken.
  bool fill(std::span<std::byte> into, LaneListener& listener, bool& read_any);

  std::unique_ptr<ByteStream> stream_;
  bool broken_ = false;
  bool ending_ = false;
  bool lingers_ = false;  // until the peer has closed
  bool said_all_ = false;
  std::vector<std::vector<std::byte>> sends_;
  std::vector<std::vector<std::byte>> receives_;
  std::vector<unsigned> free_;
  std::vector<unsigned> free_receives_;
  struct Sending {
    unsigned slot = 0;
    std::array<std::byte, frame_header> header{};
    std::size_t payload = 0;
    std::size_t done = 0;
  };
  std::deque<Sending> sending_;
  std::array<std::byte, frame_header> header_{};
  std::optional<Frame> frame_;
  unsigned slot_ = 0;
  std::size_t filled_ = 0;  // of the header, then of the payload
  Bytes data_sent_;
  Bytes data_received_;
};

}  // namespace gdr::transport
