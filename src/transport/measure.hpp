#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/transport/transport.hpp"

namespace gdr::transport {

/// What is transferred. The client sends it to the server.
struct MeasurePlan {
  enum class Operation : unsigned char { write, read, send };
  Operation operation = Operation::write;
  bool latency = false;  ///< ping-pong; else many operations at once
  bool check = false;
  unsigned queue_pairs = 1;
  unsigned iterations = 1000;
  unsigned depth = 128;  ///< operations in progress at once
  std::vector<Bytes> sizes;
  bool operator==(const MeasurePlan&) const = default;
};

/// The figures of one size. The latency of a write or send is half of the round trip, that of a
/// read all of it, as in perftest.
struct Measured {
  Bytes size;
  unsigned iterations = 0;
  Bandwidth peak;  ///< best over `depth` operations in a row
  Bandwidth average;
  std::vector<Duration> latencies;  ///< sorted; of a latency run
};

/// The plan as the first bytes of a stream, before the connection is set up. Waits up to `limit`.
Status send_plan(ByteStream& stream, const MeasurePlan& plan, Duration limit);
Result<MeasurePlan> receive_plan(ByteStream& stream, Duration limit);

/// For observers of a stream: a plan begins with a header of this size, which says how many bytes
/// follow; nullopt: this is no plan.
constexpr std::size_t plan_header = 24;
std::optional<std::size_t> plan_body(std::span<const std::byte, plan_header> header);

/// Called with what a write or send is about to send; an error ends the run.
using BeforeSending = std::function<Status(memory::DevicePointer from, Bytes size)>;

/// Each side of a run, over a connection that is set up; they block until all sizes are done. Both
/// sides take their buffers from `memory`.
Result<std::vector<Measured>> run_client(Connection& connection, memory::DeviceMemory& memory,
                                         const MeasurePlan& plan,
                                         BeforeSending before_sending = {});
Status run_server(Connection& connection, memory::DeviceMemory& memory, const MeasurePlan& plan,
                  BeforeSending before_sending = {});

}  // namespace gdr::transport
