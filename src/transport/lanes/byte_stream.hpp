#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "src/common/status.hpp"
#include "src/common/units.hpp"

namespace gdr::transport {

/// A connected stream of bytes that never blocks.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// How many bytes were taken; 0: none just now. Cause::peer_gone when the other side has closed.
  virtual Result<std::size_t> write_some(std::span<const std::byte> bytes) = 0;
  virtual Result<std::size_t> read_some(std::span<std::byte> bytes) = 0;
  virtual void end_writing() = 0;  ///< the other side then reads the end; reading continues
  [[nodiscard]] virtual std::string peer() const = 0;  ///< "10.0.0.2:18515"
};

/// Waits for connections.
class Listener {
 public:
  virtual ~Listener() = default;
  [[nodiscard]] virtual std::uint16_t port() const = 0;
  virtual Result<std::unique_ptr<ByteStream>> accept(
      Duration limit) = 0;  ///< Cause::timed_out when no peer connected
};

/// Listens by TCP, or by rdma_cm (a stream over RDMA, for set-up without TCP). `host` is a name or
/// an address; port 0 means any. A dead peer of a TCP stream is noticed within 10 s
/// (TCP_USER_TIMEOUT and keep-alives). Errors of listening are InputErrors.
enum class SetUp { tcp, rdma_cm };
std::unique_ptr<Listener> listen(SetUp by, std::uint16_t port);
/// Retries until `limit` while no server listens: the peer may start later.
Result<std::unique_ptr<ByteStream>> connect(SetUp by, const std::string& host, std::uint16_t port,
                                            Duration limit);

/// Two ends inside the process.
std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>> stream_pair();

}  // namespace gdr::transport
