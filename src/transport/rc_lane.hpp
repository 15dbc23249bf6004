#pragma once

#include <array>
#include <deque>
#include <memory>
#include <vector>

#include "transport/lane.hpp"
#include "transport/options.hpp"

namespace gdr::transport {

/// One queue pair: RDMA, and frames as sends into receives that are posted all the time. A sender has credits for the receives of its
/// peer, so that frames never find none; immediates use one, too.
class RcLane final : public Lane {
 public:
  /// Bounce buffers are host memory of `chunk` bytes each. Throws no exception: the status says what failed.
  static Result<std::unique_ptr<RcLane>> make(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic);
  ~RcLane() override;
  RcLane(const RcLane&) = delete;
  RcLane& operator=(const RcLane&) = delete;

  Status connect(const Route& route, unsigned peer_depth);
  [[nodiscard]] std::uint32_t number() const { return pair_->number(); }
  [[nodiscard]] unsigned nic() const { return nic_; }
  [[nodiscard]] Device& device() const { return device_; }

  std::optional<Room> acquire(bool control) override;
  void send(unsigned slot, const Frame& frame) override;
  void abandon(unsigned slot) override { free_.push_back(slot); }
  std::span<const std::byte> received(unsigned slot) const override { return {buffer_ + (sends_ + slot) * stride_ + frame_header, chunk_.count}; }
  void release(unsigned slot) override;
  bool poll(LaneListener& listener) override;
  [[nodiscard]] bool drained() const override { return in_flight_ == 0 && ready_.empty(); }

  /// Posts RDMA work; `full` when the queue or the credits (of an immediate) are used up.
  PostResult post(SendWork work);
  /// An address and key for 8 bytes of a slot: where the NIC puts the old value of an atomic.
  [[nodiscard]] std::pair<std::uint64_t, std::uint32_t> result_place(unsigned slot) const;
  [[nodiscard]] std::uint64_t result(unsigned slot) const;
  /// Afterwards no NIC touches any buffer, and nothing more comes; may be called by the listener.
  void shut() { pair_.reset(); }

 private:
  RcLane(Device& device, const TransportOptions& options, Bytes chunk, unsigned nic);
  Status prepare();
  bool post_receive(unsigned slot);
  bool flush_ready();
  void return_credits();
  void handle(const Completion& completion, LaneListener& listener);
  void take_frame(unsigned slot, Bytes size, LaneListener& listener);

  Device& device_;
  unsigned nic_;
  Bytes chunk_;
  std::size_t stride_;
  unsigned sends_;     // buffers
  unsigned receives_;
  unsigned queue_depth_;
  std::byte* buffer_ = nullptr;
  std::size_t buffer_size_ = 0;
  std::unique_ptr<MemoryRegion> region_;
  std::unique_ptr<CompletionQueue> queue_;
  std::unique_ptr<QueuePair> pair_;  // goes first
  std::vector<unsigned> free_;
  std::deque<std::pair<unsigned, Frame>> ready_;
  unsigned in_flight_ = 0;  // work requests
  unsigned credits_ = 0;
  unsigned owed_ = 0;
};

}  // namespace gdr::transport
