#pragma once

#include <memory>
#include <optional>
#include <string>

#include "src/memory/device_memory.hpp"
#include "src/transport/connection/results.hpp"
#include "src/transport/lanes/byte_stream.hpp"
#include "src/transport/policy/options.hpp"
#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

class ProgressEngine;  // engine/progress_engine.hpp
class ConnectionCore;  // connection/connection_core.hpp

/// A connection. Functions may be called from any thread; only those named wait, and close, block.
/// Pointers are of the transport's memory. Operations start in the order in which they were asked
/// for and may end in any order. An operation that cannot start returns a status (queue_full,
/// invalid, registration_refused); whatever happens later is the result of test and wait. When the
/// connection breaks, every operation ends with the cause. Made by Transport::open.
class Connection {
 public:
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// nullopt while set-up is in progress.
  [[nodiscard]] std::optional<Status> ready();
  Status wait_ready();
  /// ok, or why the connection can no longer be used.
  [[nodiscard]] Status status();
  [[nodiscard]] TransportPath path();
  [[nodiscard]] PathBytes bytes();

  /// The peer may read and write the range as soon as it learns of it. The caller chooses the
  /// `tag`, a different number for each range.
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

  /// Each result is given once; nullopt while the operation is in progress.
  std::optional<OperationResult> test(OperationId operation);
  OperationResult wait(OperationId operation);
  std::optional<Arrival> arrival();
  /// timed_out after the limit of operations. With a nap it sleeps that long whenever nothing
  /// happens, instead of polling: for RDMA that needs nothing from this side's CPU.
  Result<Arrival> wait_arrival(Duration nap = {});

  /// Lets what was sent leave, notifies the peer, and ends whatever is unfinished with
  /// Cause::cancelled.
  void close();

 private:
  friend class Transport;
  Connection(std::shared_ptr<ProgressEngine> engine, std::unique_ptr<ByteStream> stream,
             bool initiator);

  std::shared_ptr<ProgressEngine> engine_;
  std::unique_ptr<ConnectionCore> core_;
};

/// The NICs and the memory of one side, and the engine of its connections. A thread that waits
/// makes progress for all of them; without a waiting thread, call progress often. Freeing memory
/// that a connection uses breaks that connection; otherwise only the registrations of the memory
/// go.
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
  /// Makes progress on all connections; false when nothing happened.
  bool progress();
  [[nodiscard]] std::string nics() const;  ///< "rxe0,rxe1", or "none"

 private:
  std::shared_ptr<ProgressEngine> engine_;
};

}  // namespace gdr::transport
