#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "src/memory/device_memory.hpp"
#include "src/transport/engine/registration_cache.hpp"
#include "src/transport/lanes/frame.hpp"

namespace gdr::transport {

/// The rkeys of a range of the peer, one per queue pair; empty or null if RDMA cannot reach it.
using Keys = std::shared_ptr<const std::vector<std::uint32_t>>;

// What is particular to each kind of operation. These are plain values without destructors, so that
// an operation is put into its table without a switch over the kinds.

struct Write {
  std::optional<std::uint32_t> immediate;
  bool immediate_sent = false;          ///< it has left, or leaves with what has been queued
  bool verify_sent = false;             ///< the peer was asked to compare checksums
  std::bitset<max_lanes> lanes_used{};  ///< each of them sends a notify when its part is complete
};
struct Read {
  bool verify_sent = false;
};
struct Send {
  std::uint64_t peer_receive = 0;  ///< the receive that the bytes are for
};
struct Receive {
  std::uint64_t peer_send = 0;
  std::optional<std::uint32_t> crc{};  ///< of the sender's bytes
};
struct Atomic {
  bool swap = false;          ///< compare and swap; else fetch and add
  std::uint64_t operand = 0;  ///< what is added, or compared with
  std::uint64_t desired = 0;
  unsigned slot = 0;  ///< the first queue pair's buffer that receives the old value
};
/// The peer's read, answered through bounce buffers.
struct ServedRead {
  std::uint64_t peer_read = 0;
};

/// waiting: a receive without a matching send. announcing: a send not yet announced to the peer.
/// issuing: some pieces are not posted. moving: all are posted, not all are done. confirming: the
/// peer has yet to answer.
enum class Phase { waiting, announcing, issuing, moving, confirming };

/// The place at the peer.
struct PeerPlace {
  std::uint64_t tag = 0;  ///< of the shared range
  std::uint64_t address = 0;
  Keys keys;
};

struct Operation {
  std::variant<Write, Read, Send, Receive, Atomic, ServedRead> kind;
  Phase phase = Phase::issuing;
  memory::DevicePointer local;
  Bytes size;
  PeerPlace peer{};
  Duration deadline{};   ///< set when the clock is read next
  bool by_rdma = false;  ///< else through bounce buffers
  std::shared_ptr<const RegisteredRange>
      registered{};          ///< the registration that contains `local`, for RDMA
  Bytes issued{};            ///< posted, or being copied
  Bytes placed{};            ///< incoming bytes that are in device memory
  unsigned pieces = 0;       ///< issued so far; an operation of 0 bytes is one piece
  unsigned outstanding = 0;  ///< pieces that are not done

  template <typename Kind>
  [[nodiscard]] bool is() const {
    return std::holds_alternative<Kind>(kind);
  }
};

/// "write of 64KiB"
std::string describe(const Operation& operation);

/// A send of the peer that has no receive yet.
struct Message {
  std::uint64_t operation = 0;
  std::uint64_t address = 0;
  Bytes size;
  std::optional<std::uint32_t> crc;
  Keys keys;
};

}  // namespace gdr::transport
