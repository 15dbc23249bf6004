#pragma once

#include <deque>
#include <optional>

#include "src/transport/connection/bounce.hpp"
#include "src/transport/connection/operation_table.hpp"
#include "src/transport/connection/shared_ranges.hpp"

namespace gdr::transport {

/// The operations that this side asked for (and the peer's reads, which it answers), from the call
/// to the result: each becomes RDMA work requests, or frames through bounce buffers, and is
/// confirmed. Operations start in order.
class Outgoing {
 public:
  Outgoing(ProgressEngine& engine, LaneSet& lanes, Bounce& bounce, Control& control,
           SharedRanges& ranges)
      : engine_(engine), lanes_(lanes), bounce_(bounce), control_(control), ranges_(ranges) {}
  Outgoing(const Outgoing&) = delete;
  Outgoing& operator=(const Outgoing&) = delete;

  /// What the handshake agreed on: the path, and how many bytes a frame carries.
  void open(TransportPath path, Bytes chunk) {
    path_ = path;
    chunk_ = chunk;
  }

  /// Checks and numbers an operation, and puts it at the end of the queue. Errors are returned to
  /// the caller and do not end the connection.
  Result<OperationId> begin(Operation&& operation);
  /// Posts operations in order while there is room; sets `any` if something happened. An error ends
  /// the connection.
  Status issue(bool& any);
  [[nodiscard]] bool to_issue() const { return !to_issue_.empty(); }

  /// One piece is done: its work request, or its copy.
  void piece_done(std::uint64_t number);
  /// A frame with bytes of the operation was handed to its lane.
  void frame_left(std::uint64_t number, const Frame& frame);
  /// Bytes of a read or receive have been placed through bounce buffers.
  void piece_placed(std::uint64_t number, Bytes size);
  /// Where the bytes of a reply or body go; nullopt: the operation has ended. Cause::protocol when
  /// they were not requested.
  Result<std::optional<memory::DevicePointer>> place_of(const Frame& frame);

  [[nodiscard]] bool has_receive() const { return !receives_.empty(); }
  /// The first receive takes this send of the peer.
  void receive(Message message);

  /// Frames of the peer. An error of take_clear ends the connection.
  Status take_clear(const Frame& frame);
  void take_done(const Frame& frame, std::span<const std::byte> payload, const std::string& peer);
  void take_get(const Frame& frame);

  std::optional<OperationResult> take_result(std::uint64_t number) {
    return operations_.take(number);
  }
  [[nodiscard]] bool in_progress(std::uint64_t number) {
    return operations_.find(number) != nullptr;
  }
  /// Gives new operations their deadline. Returns an error, which ends the connection, when one is
  /// late; a late receive that no send has met ends alone.
  Status check_deadlines(Duration now);
  /// "write of 4KiB": an operation whose memory is inside the allocation; nullopt: none is.
  [[nodiscard]] std::optional<std::string> user_of(const memory::PointerInfo& allocation) const;
  void end_all(const Status& why);
  [[nodiscard]] Bytes rdma_bytes() const { return rdma_bytes_; }
  [[nodiscard]] Bytes bounced_bytes() const { return bounced_bytes_; }

 private:
  enum class Issued { all, blocked, broken };  ///< broken: broken_ says why

  Status look_up_local(Operation& operation) const;
  Status register_local(Operation& operation) const;
  Status choose_rdma_or_bounce(Operation& operation);
  void finish(std::uint64_t number, const Status& status, std::uint64_t old_value = 0);

  Issued issue_one(std::uint64_t number, Operation& operation);
  Issued issue_rdma(std::uint64_t number, Operation& operation);
  PostResult post_piece(std::uint64_t number, Operation& operation, Bytes size, bool last);
  Issued issue_frames(std::uint64_t number, Operation& operation);
  Frame first_frame(std::uint64_t number, Operation& operation) const;
  Issued issue_atomic(std::uint64_t number, Operation& operation, Atomic& atomic);
  Issued announce_send(std::uint64_t number, Operation& operation);
  Issued ask_for_read(std::uint64_t number, Operation& operation);
  Issued broken(const Operation& operation);
  [[nodiscard]] Bytes largest_piece(Bytes size) const;

  void all_pieces_done(std::uint64_t number, Operation& operation);
  void finish_receive(std::uint64_t number, Operation& operation, const Receive& receive);
  void confirm(std::uint64_t number, Operation& operation);
  void ask_to_verify(std::uint64_t number, const Operation& operation, Write* write);
  void notify(std::uint64_t number, const Operation& operation, const Write& write);

  ProgressEngine& engine_;
  LaneSet& lanes_;
  Bounce& bounce_;
  Control& control_;
  SharedRanges& ranges_;
  TransportPath path_ = TransportPath::tcp;
  Bytes chunk_;
  OperationTable operations_;
  std::deque<std::uint64_t> to_issue_;
  std::deque<std::uint64_t> receives_;  // that no send has met
  Bytes rdma_bytes_;
  Bytes bounced_bytes_;  // through bounce buffers of queue pairs
  bool fallback_logged_ = false;
  Status broken_;
};

}  // namespace gdr::transport
