#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/common/status.hpp"
#include "src/common/units.hpp"

/// What the transport needs of RDMA verbs. ibverbs.cpp calls libibverbs, double_*.cpp simulate it
/// inside the process; both pass tests/transport/verbs_contract_test.cpp.
namespace gdr::transport {

enum class GidType { infiniband, rocev1, rocev2 };
using Gid = std::array<std::uint8_t, 16>;
struct GidEntry {
  unsigned index = 0;
  Gid gid{};
  GidType type = GidType::rocev2;
  bool operator==(const GidEntry&) const = default;
};

struct PortState {
  bool active = false;
  bool ethernet = true;
  std::uint16_t lid = 0;
  Bytes mtu{1024};
  Bytes largest_message{std::uint64_t{1} << 31U};
};

struct DeviceLimits {
  unsigned queue_depth = 0;      ///< work requests in a queue
  unsigned reads_in_flight = 0;  ///< RDMA reads and atomics per queue pair, in either role
  unsigned completions = 0;      ///< entries of a completion queue
};

enum class Opcode { write, write_with_immediate, read, send, fetch_add, compare_swap };
struct SendWork {
  std::uint64_t id = 0;
  Opcode opcode = Opcode::write;
  std::uint64_t local_address = 0;  ///< atomics: where the 8 bytes of the old value go
  std::uint32_t local_key = 0;
  Bytes size;
  std::uint64_t remote_address = 0;
  std::uint32_t remote_key = 0;
  std::uint32_t immediate = 0;
  std::uint64_t operand = 0;  ///< what is added, or compared with
  std::uint64_t swap = 0;
};
struct ReceiveWork {
  std::uint64_t id = 0;
  std::uint64_t address = 0;
  std::uint32_t key = 0;
  Bytes size;
};

/// How a work request ended: the words of ibv_wc_status.
enum class CompletionStatus {
  ok,
  flushed,
  local_length,
  local_protection,
  local_operation,
  remote_access,
  remote_invalid,
  remote_operation,
  retry_exceeded,
  rnr_exceeded,
  other
};
std::string_view to_string(CompletionStatus status);
struct Completion {
  std::uint64_t id = 0;
  CompletionStatus status = CompletionStatus::ok;
  bool received = false;  ///< of a receive; valid with status ok
  bool has_immediate = false;
  std::uint32_t immediate = 0;
  Bytes size;  ///< what arrived
};

enum class PostResult { posted, full, refused };
enum class DeviceEvent { port_down, port_up, queue_pair_failed, device_failed, gids_changed };

struct QueuePairSizes {
  unsigned sends = 64;
  unsigned receives = 64;
};
/// How a queue pair reaches its peer. `timeout` is ibv_qp_attr's: 4.096 us times 2 to its power.
/// Retries are 0 to 6; 7 would mean without limit.
struct QueuePairRoute {
  std::uint32_t peer_queue_pair = 0;
  std::uint32_t peer_psn = 0;
  std::uint32_t own_psn = 0;
  Gid peer_gid{};
  std::uint16_t peer_lid = 0;
  unsigned gid_index = 0;
  Bytes mtu{1024};
  unsigned reads_in_flight = 1;
  unsigned timeout = 14;
  unsigned retries = 6;
  unsigned receiver_not_ready_retries = 6;
};

/// Registered while it lives.
class MemoryRegion {
 public:
  virtual ~MemoryRegion() = default;
  [[nodiscard]] virtual std::uint32_t local_key() const = 0;
  [[nodiscard]] virtual std::uint32_t remote_key() const = 0;
};

/// Reliable, connected. Once destroyed, no NIC touches its buffers.
class QueuePair {
 public:
  virtual ~QueuePair() = default;
  [[nodiscard]] virtual std::uint32_t number() const = 0;
  virtual Status connect(
      const QueuePairRoute& route) = 0;  ///< receives may be posted before it, sends after it
  virtual PostResult post(const SendWork& work) = 0;
  virtual PostResult post(const ReceiveWork& work) = 0;
  virtual void fail() = 0;  ///< everything that is posted completes as flushed
};

class CompletionQueue {
 public:
  virtual ~CompletionQueue() = default;
  virtual std::size_t poll(std::span<Completion> completions) = 0;  ///< returns how many there were
};

/// One port of an opened NIC. Objects made by it must be destroyed before it.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual std::string sysfs_device()
      const = 0;  ///< real path of its PCI function; "" when it has none
  [[nodiscard]] virtual DeviceLimits limits() const = 0;
  [[nodiscard]] virtual PortState port() const = 0;
  [[nodiscard]] virtual std::vector<GidEntry> gids() const = 0;
  /// Local and remote access, atomics included. `address` is the process's, `iova` what peers and
  /// work requests say.
  virtual Result<std::unique_ptr<MemoryRegion>> register_memory(std::uint64_t address, Bytes size,
                                                                std::uint64_t iova) = 0;
  virtual Result<std::unique_ptr<MemoryRegion>> register_dma_buf(int fd, Bytes offset, Bytes size,
                                                                 std::uint64_t iova) = 0;
  virtual Result<std::unique_ptr<CompletionQueue>> create_completion_queue(unsigned depth) = 0;
  virtual Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& queue,
                                                               QueuePairSizes sizes) = 0;
  virtual std::optional<DeviceEvent> next_event() = 0;
};

class Verbs {
 public:
  virtual ~Verbs() = default;
  [[nodiscard]] virtual std::vector<std::string> device_names() const = 0;
  virtual Result<std::unique_ptr<Device>> open(const std::string& name) = 0;
  [[nodiscard]] virtual Duration now()
      const = 0;  ///< of a clock that only goes forward; simulated in the double
  virtual void idle(unsigned rounds) = 0;  ///< nothing has happened in this many rounds of
                                           ///< polling in a row
};

/// libibverbs of this machine.
std::unique_ptr<Verbs> make_ibverbs();

}  // namespace gdr::transport
