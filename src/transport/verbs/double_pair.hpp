#pragma once

#include <map>

#include "src/transport/verbs/double_fabric.hpp"

namespace gdr::transport {

/// A reliable queue pair: go-back-N with acknowledgements, retransmission by time and by
/// out-of-sequence reports, receiver-not-ready.
class DoublePair final : public QueuePair {
 public:
  DoublePair(std::shared_ptr<DoubleFabric> fabric, DoubleDevice& device,
             DoubleCompletionQueue& queue, QueuePairSizes sizes);
  ~DoublePair() override;
  DoublePair(const DoublePair&) = delete;
  DoublePair& operator=(const DoublePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return number_; }
  Status connect(const QueuePairRoute& route) override;
  PostResult post(const SendWork& work) override;
  PostResult post(const ReceiveWork& work) override;
  void fail() override;

  void arrived(DoublePacket packet);  ///< with the fabric's lock held

 private:
  enum class State { initialized, connected, failed };
  struct Outgoing {
    SendWork work;
    std::uint64_t first = 0;
    std::uint64_t packets = 1;
    std::uint64_t responses = 0;  // of a read or atomic
    [[nodiscard]] bool fetches() const {
      return work.opcode == Opcode::read || work.opcode == Opcode::fetch_add ||
             work.opcode == Opcode::compare_swap;
    }
  };

  // requester
  void pump();
  bool send_request(Outgoing& outgoing);
  void acknowledged(std::uint64_t below);
  void go_back(std::uint64_t psn);
  void take_response(const DoublePacket& packet);
  void arm_timer();
  void timed_out();
  void wait_for_receiver(std::uint64_t psn);
  void break_down(CompletionStatus status);
  void complete(const Outgoing& outgoing, CompletionStatus status);
  Outgoing* at_psn(std::uint64_t psn);

  // responder
  void take_request(DoublePacket& packet);
  void repeat(const DoublePacket& packet);
  bool place(const DoublePacket& packet);
  bool place_send(const DoublePacket& packet);
  bool answer_read(const DoublePacket& packet);
  bool answer_atomic(const DoublePacket& packet);
  void finish_receive(const DoublePacket& packet);
  void refuse(CompletionStatus reason);
  void reply(DoublePacket::Kind kind, std::uint64_t psn);

  void flush_all();
  void to_peer(DoublePacket packet, bool again = false) {
    fabric_->send(device_, route_.peer_gid, std::move(packet), again);
  }

  std::shared_ptr<DoubleFabric> fabric_;
  DoubleDevice& device_;
  DoubleCompletionQueue& queue_;
  QueuePairSizes sizes_;
  std::uint32_t number_ = 0;
  QueuePairRoute route_;
  State state_ = State::initialized;

  std::deque<Outgoing> outgoing_;
  std::uint64_t end_ = 0;      // PSN of the next request that is posted
  std::uint64_t next_ = 0;     // PSN to be sent next
  std::uint64_t highest_ = 0;  // below it: sent at least once
  std::uint64_t oldest_ = 0;   // not acknowledged
  unsigned retries_ = 0;
  unsigned not_ready_ = 0;
  bool waiting_ = false;       // for the receiver to be ready
  bool reported_gap_ = false;  // in the responses
  std::uint64_t timer_ = 0;

  std::deque<ReceiveWork> receives_;
  std::uint64_t expected_ = 0;
  Bytes received_;         // of a send in progress
  bool reported_ = false;  // that a packet is out of sequence
  std::map<std::uint64_t, std::uint64_t> atomic_results_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace gdr::transport
