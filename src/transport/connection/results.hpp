#pragma once

#include <cstdint>

#include "src/common/status.hpp"
#include "src/common/units.hpp"

/// What a connection hands out.
namespace gdr::transport {

/// A range of the peer's memory that it has shared.
struct RemoteRange {
  std::uint64_t tag = 0;
  std::uint64_t address = 0;
  Bytes size;
  bool operator==(const RemoteRange&) const = default;
};

struct OperationId {
  std::uint64_t number = 0;
};

/// How an operation ended. After an error the contents of the destination are undefined.
struct OperationResult {
  Status status;
  Bytes size;                   ///< of a receive: bytes that came
  std::uint64_t old_value = 0;  ///< of an atomic
};

/// The peer's write with an immediate is complete: its bytes are in device memory, and visible to
/// the device.
struct Arrival {
  std::uint32_t immediate = 0;
  Bytes size;
};

/// Bytes that one connection moved, as observed. Those of the memory's copy engine are in
/// DeviceMemory::moved().
struct PathBytes {
  Bytes rdma;        ///< RDMA work requests from and to device memory that this side asked for
  Bytes bounce_out;  ///< sent from bounce buffers
  Bytes bounce_in;   ///< received into bounce buffers
  Bytes socket_out;  ///< handed to the kernel's socket
  Bytes socket_in;
  bool operator==(const PathBytes&) const = default;
};

}  // namespace gdr::transport
