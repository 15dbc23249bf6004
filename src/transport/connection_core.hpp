#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/engine.hpp"
#include "src/transport/operation_table.hpp"
#include "src/transport/rc_lane.hpp"
#include "src/transport/stream_lane.hpp"

namespace gdr::transport {

/// A connection behind its lock (the engine's). One thread is inside at a time.
class ConnectionCore final : public LaneListener {
 public:
  ConnectionCore(Engine& engine, std::unique_ptr<ByteStream> stream, bool initiator);
  ~ConnectionCore() override;

  bool progress(bool thorough);
  void memory_freed(const memory::PointerInfo& info);
  void close_now();
  [[nodiscard]] bool drained() const;
  [[nodiscard]] bool gone() const { return state == State::failed && control_ == nullptr; }

  enum class State { setting_up, open, failed };
  State state = State::setting_up;
  Status status;  ///< why it failed
  PathChoice path;
  OperationTable operations;
  std::deque<Arrival> arrivals;
  [[nodiscard]] PathBytes bytes() const;

  struct Peer {
    RemoteRange range;
    Keys keys;
  };
  std::map<std::uint64_t, Peer> shared_by_peer;
  Status share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size);
  Status unshare(std::uint64_t tag);

  /// Checks, numbers and queues it.
  Result<OperationId> begin(Operation&& operation);

  void on_frame(Lane& lane, const Frame& frame, unsigned slot) override;
  void on_immediate(std::uint32_t immediate, Bytes size) override;
  void on_rdma(std::uint64_t operation) override;
  void on_broken(Lane& lane, Outcome outcome) override;
  void on_broken(const Status& status) override;

 private:
  static constexpr std::size_t no_lane = ~std::size_t{0};

  // connection_setup.cpp
  void progress_setup();
  bool exchange_hello();
  Status make_lanes(std::size_t count);
  void answer(const Hello& peer);
  void conclude(const Hello& peer);
  Status connect_lanes(const Hello& peer);
  void start();
  [[nodiscard]] Hello own_hello() const;
  void reject(const Status& status);

  // connection_core.cpp
  void fail(const Status& status, bool tell_peer);
  void suspect(const Status& why);
  void finish(std::uint64_t number, const Status& status, std::uint64_t old_value = 0);
  void check_deadlines();
  bool send_control();
  void queue_control(Frame frame, std::vector<std::byte> payload = {}, std::size_t lane = 0);
  void reply_done(std::uint64_t operation, const Status& status, std::uint64_t extra = 0);
  [[nodiscard]] Lane& lane_at(std::size_t index);
  [[nodiscard]] std::size_t data_lanes() const { return lanes_.empty() ? 1 : lanes_.size(); }
  Status look_up_local(Operation& operation);
  [[nodiscard]] std::string words(const Operation& operation) const;
  Result<std::uint32_t> checksum(memory::DevicePointer pointer, Bytes size);
  Status flush(memory::DevicePointer pointer, Bytes size);
  [[nodiscard]] const Share* share_of(std::uint64_t address, std::uint64_t size) const;

  // connection_issue.cpp
  bool issue_all();
  bool issue(std::uint64_t number, Operation& operation);
  bool issue_pieces(std::uint64_t number, Operation& operation);
  PostResult issue_piece(std::uint64_t number, Operation& operation, Bytes size, bool last);
  bool issue_frames(std::uint64_t number, Operation& operation, FrameType type);
  bool issue_atomic(std::uint64_t number, Operation& operation);
  bool issue_message(std::uint64_t number, Operation& operation);
  Status choose_way(Operation& operation);
  Status register_local(Operation& operation);
  [[nodiscard]] std::vector<std::uint32_t> remote_keys(const RegisteredRange& range) const;
  Status copy_once_more(const Operation& operation);
  void moved(std::uint64_t number, Operation& operation);
  void confirm(std::uint64_t number, Operation& operation);
  void match_messages();
  bool finish_copies();

  // connection_frames.cpp
  void on_control(const Frame& frame, std::span<const std::byte> payload, bool by_stream);
  void take_data(Lane& lane, const Frame& frame, unsigned slot);
  void placed(const Frame& frame);
  void put_complete(std::uint64_t operation, Inbound& inbound);
  void serve_get(const Frame& frame);
  void serve_atomic(const Frame& frame);
  void serve_verify(const Frame& frame);
  void take_notify(const Frame& frame);
  void take_message(const Frame& frame, std::span<const std::byte> payload);
  void take_done(const Frame& frame, std::span<const std::byte> payload);
  void take_share(const Frame& frame, std::span<const std::byte> payload);

  Engine& engine_;
  std::unique_ptr<ByteStream> stream_;  // until the control lane takes it
  const bool initiator_;
  std::string peer_name_;
  Duration setup_deadline_;
  Bytes chunk_;
  std::vector<std::byte> hello_out_;
  std::vector<std::byte> hello_in_;
  bool hello_read_ = false;
  bool answered_ = false;
  bool handshake_done_ = false;  // initiator: at once; the other: when it hears that the
                                 // initiator's queue pairs are connected
  bool peer_closed_ = false;

  std::vector<std::unique_ptr<RcLane>> lanes_;
  std::vector<LaneOffer> offers_;
  std::unique_ptr<StreamLane> control_;
  memory::Stream out_;
  memory::Stream in_;
  std::deque<std::uint64_t> to_issue_;
  std::deque<std::uint64_t> receives_;
  std::deque<Message> messages_;
  std::map<std::uint64_t, Inbound> inbound_;
  std::map<std::uint64_t, std::uint64_t> notified_;
  std::deque<CopyOut> copies_out_;
  std::deque<CopyIn> copies_in_;
  std::deque<Control> controls_;
  std::map<std::uint64_t, Share> shares_;
  std::size_t next_lane_ = 0;
  std::optional<Duration> suspected_since_;  // of a queue pair's failure that the peer may explain
  Status suspicion_;
  Duration last_words_until_;
  bool fallback_logged_ = false;
  PathBytes bytes_;
};

}  // namespace gdr::transport
