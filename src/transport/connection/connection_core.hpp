#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/transport/connection/handshake.hpp"
#include "src/transport/connection/incoming.hpp"

namespace gdr::transport {

/// A connection behind its lock (the engine's): one thread is inside at a time. It owns the parts,
/// hands each frame and completion to the part it is for, and alone decides whether the connection
/// is open or has failed.
class ConnectionCore final : public LaneListener, public EngineMember {
 public:
  ConnectionCore(ProgressEngine& engine, std::unique_ptr<ByteStream> stream, bool initiator);
  ~ConnectionCore() override;

  enum class State { setting_up, open, failed };
  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Status& status() const { return status_; }  ///< why it failed
  [[nodiscard]] TransportPath path() const { return path_.path; }
  [[nodiscard]] PathBytes bytes() const;

  Status share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size);
  Status unshare(std::uint64_t tag) { return ranges_.unshare(tag); }
  [[nodiscard]] std::optional<RemoteRange> shared_by_peer(std::uint64_t tag) const;

  Result<OperationId> begin(Operation&& operation);
  std::optional<OperationResult> take_result(std::uint64_t number) {
    return outgoing_.take_result(number);
  }
  [[nodiscard]] bool in_progress(std::uint64_t number) { return outgoing_.in_progress(number); }
  std::optional<Arrival> take_arrival() { return incoming_.take_arrival(); }

  /// Every requested operation has left.
  [[nodiscard]] bool drained() const;
  void close_now();
  /// The final messages have left, too.
  [[nodiscard]] bool gone() const { return state_ == State::failed && !lanes_.opened(); }

  bool progress(bool thorough) override;
  void memory_freed(const memory::PointerInfo& info) override;

  void on_frame(Lane& lane, const Frame& frame, unsigned slot) override;
  void on_immediate(std::uint32_t immediate, Bytes size) override;
  void on_rdma(std::uint64_t operation) override { outgoing_.piece_done(operation); }
  void on_broken(Lane& lane, CompletionStatus failure) override;
  void on_broken(const Status& status) override;

 private:
  bool progress_handshake();
  bool finish_copies();
  void issue(bool& any);
  void on_control(const Frame& frame, std::span<const std::byte> payload, bool by_stream);
  void take_goodbye(bool by_stream);
  void check_deadlines();
  void fail(const Status& why, bool tell_peer);
  void fail_unless_ok(const Status& status) {
    if (!status.ok()) fail(status, true);
  }
  void wait_for_peers_reason(const Status& why);

  ProgressEngine& engine_;
  const std::string peer_;
  State state_ = State::setting_up;
  Status status_;
  PathChoice path_;
  Duration setup_deadline_;
  std::unique_ptr<Handshake> handshake_;  // until it is done
  LaneSet lanes_;
  Control control_;
  Bounce bounce_;
  SharedRanges ranges_;
  Outgoing outgoing_;
  Incoming incoming_;
  bool initiator_;
  bool peer_closed_ = false;
  std::optional<Duration> broken_since_;  // a queue pair failed, and the peer may report why
  Status broken_because_;                 // the reason if it does not
  Duration last_words_until_;
};

}  // namespace gdr::transport
