#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/memory/device_memory.hpp"
#include "src/transport/frame.hpp"
#include "src/transport/lane.hpp"
#include "src/transport/registration_cache.hpp"

/// What a connection remembers of things that are under way.
namespace gdr::transport {

/// Of a range of the peer's, one a lane; none or null: RDMA cannot reach it.
using Keys = std::shared_ptr<const std::vector<std::uint32_t>>;

enum class OperationKind { write, read, send, receive, atomic, serve_read };
enum class Phase { waiting, issuing, moving, confirming };
struct Operation {
  OperationKind kind = OperationKind::write;
  Phase phase = Phase::issuing;
  memory::DevicePointer local;
  Bytes size;
  std::uint64_t remote = 0;
  std::uint64_t tag = 0;
  std::optional<std::uint32_t> immediate;
  bool swap = false;
  std::uint64_t operand = 0;
  std::uint64_t desired = 0;
  std::uint64_t peer_operation = 0;  // receive: of the send; serve_read: of the read
  std::optional<std::uint32_t> crc;  // receive: what the sender has
  Duration deadline;                 // from date_new on
  bool direct = false;
  std::shared_ptr<const RegisteredRange> registered;
  Keys keys;
  Bytes issued;
  Bytes placed;
  bool started = false;  // the first piece or frame is out, which a size of 0 needs, too
  unsigned outstanding = 0;
  std::bitset<max_lanes> lanes_used;
  bool told = false;  // the immediate is on its way
  bool verified = false;
  std::size_t lane = 0;  // atomic
  unsigned slot = 0;
};

struct Share {
  memory::DevicePointer pointer;
  Bytes size;
  std::uint64_t allocation = 0;
  std::shared_ptr<const RegisteredRange> registered;
};
struct Message {  // a send of the peer that has no receive yet
  std::uint64_t operation = 0;
  std::uint64_t address = 0;
  Bytes size;
  std::optional<std::uint32_t> crc;
  Keys keys;
};
struct Inbound {  // a write of the peer through bounce buffers
  std::uint64_t address = 0;
  Bytes total;
  Bytes placed;
  std::optional<std::uint32_t> immediate;
  Status refused;
};
struct CopyOut {
  Lane* lane;
  unsigned slot;
  Frame frame;
  memory::Event event;
  std::uint64_t operation;
};
struct CopyIn {
  Lane* lane;
  unsigned slot;
  Frame frame;
  memory::Event event;
};
struct Control {
  Frame frame;
  std::vector<std::byte> payload;
  std::size_t lane;  // of data_lanes; no_lane: the control lane
};

}  // namespace gdr::transport
