#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/memory/backends.hpp"
#include "src/transport/transport.hpp"

namespace gdr::transport {

class Agent;  // guests/agent.hpp

/// Which memory an end has, as data that can be sent to another process.
struct MemoryChoice {
  enum class Kind : std::uint8_t { fake, bar, host, cuda_stub };
  Kind kind = Kind::fake;
  Bytes capacity{std::uint64_t{256} << 20U};  ///< of a fake
  memory::DeviceFaults faults;                ///< of fake and bar
};
/// `index` is 0 for A and 1 for B. Throws InputError.
std::shared_ptr<memory::DeviceMemory> make_memory(const MemoryChoice& choice, unsigned index);

/// A connection of this process, or one of the process at the other end. The functions are
/// Connection's.
class EndConnection {
 public:
  explicit EndConnection(std::unique_ptr<Connection> connection) : here_(std::move(connection)) {}
  EndConnection(Agent& agent, std::uint64_t number) : agent_(&agent), number_(number) {}
  ~EndConnection();
  EndConnection(const EndConnection&) = delete;
  EndConnection& operator=(const EndConnection&) = delete;
  [[nodiscard]] Connection& here() const { return *here_; }

  [[nodiscard]] std::optional<Status> ready();
  [[nodiscard]] Status status();
  [[nodiscard]] TransportPath path();
  [[nodiscard]] PathBytes bytes();
  Status share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size);
  Status unshare(std::uint64_t tag);
  [[nodiscard]] std::optional<RemoteRange> shared(std::uint64_t tag);
  Result<OperationId> write(memory::DevicePointer from, const RemoteRange& to, Bytes offset,
                            Bytes size, std::optional<std::uint32_t> immediate = {});
  Result<OperationId> read(memory::DevicePointer to, const RemoteRange& from, Bytes offset,
                           Bytes size);
  Result<OperationId> send(memory::DevicePointer from, Bytes size);
  Result<OperationId> receive(memory::DevicePointer to, Bytes room);
  Result<OperationId> fetch_add(const RemoteRange& at, Bytes offset, std::uint64_t operand);
  Result<OperationId> compare_swap(const RemoteRange& at, Bytes offset, std::uint64_t expected,
                                   std::uint64_t desired);
  std::optional<OperationResult> test(OperationId operation);
  std::optional<Arrival> arrival();
  void close();

 private:
  std::unique_ptr<Connection> here_;
  Agent* agent_ = nullptr;
  std::uint64_t number_ = 0;
};

/// One side of a pair: its memory, its transport, its connection, its log.
struct End {
  std::vector<std::string> lines;  // outlives what writes into it; of this process
  Agent* agent = nullptr;          // where this end is in another process
  std::shared_ptr<memory::DeviceMemory> memory;
  std::unique_ptr<Transport> transport;  // of this process
  std::unique_ptr<EndConnection> connection;

  [[nodiscard]] std::vector<std::string> log() const;
  [[nodiscard]] memory::DevicePointer allocate(std::size_t size) const {
    return memory->allocate(Bytes{size}).value();
  }
  /// Bytes from a seed.
  static std::vector<std::uint8_t> pattern(std::size_t size, unsigned seed);
  void put(memory::DevicePointer to, const std::vector<std::uint8_t>& bytes) const;
  [[nodiscard]] std::vector<std::uint8_t> get(memory::DevicePointer from, std::size_t size) const;
};

}  // namespace gdr::transport
