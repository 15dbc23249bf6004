#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "src/transport/lanes/lane.hpp"
#include "src/transport/policy/options.hpp"

namespace gdr::transport {

/// One queue pair: RDMA, and frames. RDMA writes the payload of a data frame into the next bounce
/// buffer of the peer; the frame itself follows as a send of one packet into a posted receive.
/// (Sends of many packets would also do, but rdma_rxe of Linux 6.1 fails on them when a packet is
/// sent again: ib_send_bw with 64 KiB shows it.) A sender has credits for the receives and for the
/// bounce buffers of its peer, so that a frame always finds one. Immediates use a receive as well.
class RcLane final : public Lane {
 public:
  /// Bounce buffers are host memory of `chunk` bytes each. Throws nothing: errors are in the
  /// status.
  static Result<std::unique_ptr<RcLane>> make(Device& device, const TransportOptions& options,
                                              Bytes chunk, unsigned nic);
  ~RcLane() override;
  RcLane(const RcLane&) = delete;
  RcLane& operator=(const RcLane&) = delete;

  Status connect(const QueuePairRoute& route, const LaneOffer& peer, unsigned peer_depth,
                 Bytes peer_chunk);
  /// Where the peer writes payload: address and key of the bounce buffers.
  [[nodiscard]] std::pair<std::uint64_t, std::uint32_t> slots() const;
  [[nodiscard]] std::uint32_t number() const { return pair_->number(); }
  [[nodiscard]] unsigned nic() const { return nic_; }
  [[nodiscard]] Device& device() const { return device_; }

  std::optional<Room> acquire(bool control) override;
  void send(unsigned slot, const Frame& frame) override;
  void abandon(unsigned slot) override { free_.push_back(slot); }
  /// Below `depth_`: a bounce buffer; from `depth_` on: the payload of a receive.
  std::span<const std::byte> received(unsigned slot) const override;
  void release(unsigned slot) override;
  bool poll(LaneListener& listener) override;
  [[nodiscard]] bool drained() const override { return in_flight_ == 0 && ready_.empty(); }

  /// Posts RDMA work; `full` when the queue or the credits (of an immediate) are used up.
  PostResult post(SendWork work);
  /// Address and key of 8 bytes in a slot where the NIC puts the old value of an atomic.
  [[nodiscard]] std::pair<std::uint64_t, std::uint32_t> result_place(unsigned slot) const;
  [[nodiscard]] std::uint64_t result(unsigned slot) const;
  /// Destroys the queue pair: afterwards no NIC touches any buffer and nothing more comes. May be
  /// called by the listener.
  void shut() { pair_.reset(); }

 private:
  RcLane(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic);
  Status prepare();
  bool post_receive(unsigned slot);
  bool flush_ready();
  bool post_payload(unsigned slot, Frame& frame);
  void return_credits();
  void handle(const Completion& completion, LaneListener& listener);
  void take_frame(unsigned slot, Bytes size, LaneListener& listener);

  Device& device_;
  unsigned nic_;
  Bytes chunk_;
  std::size_t stride_;
  unsigned depth_;     // bounce buffers for incoming data
  unsigned sends_;     // buffers for outgoing frames
  unsigned receives_;  // of frames
  unsigned queue_depth_;
  std::byte* buffer_ = nullptr;
  std::size_t buffer_size_ = 0;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<QueuePair> pair_;  // destroyed first
  std::vector<unsigned> free_;
  std::deque<std::pair<unsigned, Frame>> ready_;
  unsigned in_flight_ = 0;  // work requests
  unsigned credits_ = 0;    // receives of the peer
  unsigned owed_ = 0;
  LaneOffer peer_;
  unsigned peer_depth_ = 0;
  Bytes peer_chunk_;
  unsigned slot_credits_ = 0;  // bounce buffers of the peer
  unsigned next_slot_ = 0;
  bool payload_posted_ = false;  // of the next frame to leave
  unsigned owed_slots_ = 0;
  unsigned oldest_slot_ = 0;
  std::array<Completion, 16>
      completions_;  // taken from the queue; not yet handled from next_completion_ on
  std::size_t completions_found_ = 0;
  std::size_t next_completion_ = 0;
  std::vector<bool> slot_free_;  // given back in order, from oldest_slot_ on
};

}  // namespace gdr::transport
