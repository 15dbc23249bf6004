#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/common/error.hpp"
#include "src/memory/device_memory.hpp"
#include "src/transport/byte_stream.hpp"
#include "src/transport/options.hpp"
#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

class Engine;          // engine.hpp
class ConnectionCore;  // connection_core.hpp

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

/// How an operation ended. After an error nothing is known of the bytes at the place where they
/// were to go.
struct Finished {
  Status status;
  Bytes size;                   ///< of a receive: what came
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

/// A connection. Functions may be called from any thread; none blocks but those named wait, and
/// close. Pointers are of the transport's memory. Asked operations start in order; they may end in
/// any. An operation that is not possible now gives a status (queue_full, invalid,
/// registration_refused); everything later comes with test and wait. When the connection breaks,
/// every operation ends with the cause.
class Connection {
 public:
  explicit Connection(std::shared_ptr<Engine> engine, std::unique_ptr<ByteStream> stream,
                      bool initiator);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// Nothing: the set-up is under way still.
  [[nodiscard]] std::optional<Status> ready();
  Status wait_ready();
  /// ok, or why the connection is of no more use.
  [[nodiscard]] Status status();
  [[nodiscard]] Path path();
  [[nodiscard]] PathBytes bytes();

  /// The peer may read and write the range from when it hears of it. `tag` is a number of the
  /// caller's, one a range.
  Status share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size);
  Status unshare(std::uint64_t tag);
  [[nodiscard]] std::optional<RemoteRange> shared(std::uint64_t tag);
  Result<RemoteRange> wait_shared(std::uint64_t tag);

  Result<OperationId> write(memory::DevicePointer from, const RemoteRange& to, Bytes offset,
                            Bytes size, std::optional<std::uint32_t> immediate = {});
  Result<OperationId> read(memory::DevicePointer to, const RemoteRange& from, Bytes offset,
                           Bytes size);
  Result<OperationId> send(memory::DevicePointer from, Bytes size);
  Result<OperationId> receive(memory::DevicePointer to, Bytes room);
  /// `offset` is a multiple of 8. Atomic among the atomics of this connection's path.
  Result<OperationId> fetch_add(const RemoteRange& at, Bytes offset, std::uint64_t operand);
  Result<OperationId> compare_swap(const RemoteRange& at, Bytes offset, std::uint64_t expected,
                                   std::uint64_t desired);

  /// Each result is given once.
  std::optional<Finished> test(OperationId operation);
  Finished wait(OperationId operation);
  std::optional<Arrival> arrival();
  /// timed_out after the limit of operations. With a nap it sleeps so long whenever nothing
  /// happens, instead of polling on: for who waits for RDMA that needs nothing of this side's CPU.
  Result<Arrival> wait_arrival(Duration nap = {});

  /// Lets what was sent leave, tells the peer, and ends whatever is unfinished with
  /// Cause::cancelled.
  void close();

 private:
  std::shared_ptr<Engine> engine_;
  std::unique_ptr<ConnectionCore> core_;
};

/// The path that was asked for by name cannot be had here.
class PathUnavailable : public InputError {
 public:
  explicit PathUnavailable(Status why) : InputError(why.to_string()), status(std::move(why)) {}
  const Status status;
};

/// The NICs and the memory of one side, and the engine that moves its connections on. Whoever waits
/// moves them; without waiting, call progress often. Memory that is freed while connections use it
/// breaks these; otherwise its registrations just go.
class Transport {
 public:
  /// Throws InputError: a NIC or GID index that is not there, numbers out of their ranges,
  /// PathUnavailable.
  Transport(std::shared_ptr<Verbs> verbs, std::shared_ptr<memory::DeviceMemory> memory,
            const TransportOptions& options);
  ~Transport();
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;

  /// Starts to set up a connection over a stream; one side is the initiator. Connections may
  /// outlive the Transport.
  std::unique_ptr<Connection> open(std::unique_ptr<ByteStream> stream, bool initiator);
  /// Moves all connections on; false when nothing happened.
  bool progress();
  [[nodiscard]] std::string nics() const;  ///< "rxe0,rxe1", or "none"

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace gdr::transport
