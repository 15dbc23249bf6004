#pragma once

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <queue>
#include <string>
#include <vector>

#include "src/transport/verbs/double.hpp"

namespace gdr::transport {

class DoublePair;
class DoubleDevice;

/// One RoCE packet of the double. PSNs do not wrap here.
struct DoublePacket {
  enum class Kind {
    data,
    read_request,
    atomic_request,
    read_response,
    atomic_response,
    acknowledge,
    out_of_sequence,
    not_ready,
    refuse
  };
  Kind kind = Kind::data;
  std::uint32_t to = 0;  ///< number of the queue pair
  std::uint64_t psn = 0;
  std::uint64_t count = 1;  ///< of a read: responses to send
  Opcode opcode = Opcode::write;
  bool first = false;
  bool last = false;
  std::uint64_t remote_address = 0;  ///< where this packet's bytes go to or come from
  std::uint32_t remote_key = 0;
  Bytes read_size;  ///< of a read: bytes left
  std::uint32_t immediate = 0;
  std::uint64_t operand = 0;
  std::uint64_t swap = 0;
  CompletionStatus reason = CompletionStatus::ok;  ///< of a refusal
  std::vector<std::byte> payload;
};

/// A registration. `mapped` is where iova is in this process.
struct DoubleRegion {
  std::uint64_t iova = 0;
  Bytes size;
  std::byte* mapped = nullptr;
  bool device = false;
  DoubleDevice* owner = nullptr;
};

/// Time, the wire and everything that the NICs share, behind one lock.
class DoubleFabric {
 public:
  explicit DoubleFabric(const DoubleOptions& options);

  using Action = std::function<void()>;
  /// The following functions require the lock.
  [[nodiscard]] Duration time() const { return time_; }
  void at(Duration when, Action action);
  void send(DoubleDevice& from, const Gid& to, DoublePacket packet, bool again);
  [[nodiscard]] bool has_address(const std::string& device) const;
  [[nodiscard]] bool reachable(const std::string& device) const;
  [[nodiscard]] bool port_up(const std::string& device) const;
  [[nodiscard]] bool chance(std::uint64_t number, std::uint64_t purpose, double share) const;
  /// The bytes of a range that `key` covers; null when it does not.
  std::byte* translate(const DoubleDevice& device, std::uint32_t key, std::uint64_t address,
                       Bytes size, bool write);
  void advance();

  const DoubleOptions options;
  mutable std::mutex mutex;
  std::map<Gid, DoubleDevice*> by_gid;
  std::map<std::uint32_t, DoublePair*> pairs;
  std::map<std::uint32_t, DoubleRegion> regions;  // by key
  std::map<std::string, DmaBytes> dma;
  std::size_t live = 0;
  std::uint32_t last_pair = 16;
  std::uint32_t last_key = 0;
  std::uint64_t posts = 0;
  unsigned hosts = 0;
  PacketCount packet_count;

 private:
  struct Due {
    Duration when;
    std::uint64_t order;
    Action action;
    bool operator<(const Due& other) const {
      return when != other.when ? when > other.when : order > other.order;
    }
  };
  Duration time_;
  std::uint64_t order_ = 0;
  std::priority_queue<Due> due_;
};

/// One NIC.
class DoubleDevice final : public Device {
 public:
  DoubleDevice(std::shared_ptr<DoubleFabric> fabric, std::string name, unsigned host, unsigned nic);
  ~DoubleDevice() override;
  DoubleDevice(const DoubleDevice&) = delete;
  DoubleDevice& operator=(const DoubleDevice&) = delete;

  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string sysfs_device() const override { return ""; }
  [[nodiscard]] DeviceLimits limits() const override {
    return {fabric_->options.queue_depth, 16, 1U << 20U};
  }
  [[nodiscard]] PortState port() const override;
  [[nodiscard]] std::vector<GidEntry> gids() const override;
  [[nodiscard]] std::size_t gid_count() const { return gids_.size(); }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::uint64_t address, Bytes size,
                                                        std::uint64_t iova) override;
  Result<std::unique_ptr<MemoryRegion>> register_dma_buf(int fd, Bytes offset, Bytes size,
                                                         std::uint64_t iova) override;
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(unsigned depth) override;
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& queue,
                                                       QueuePairSizes sizes) override;
  std::optional<DeviceEvent> next_event() override;

  [[nodiscard]] DoubleFabric& fabric() const { return *fabric_; }
  void happened(DeviceEvent event) { events_.push_back(event); }

 private:
  void watch_port();

  std::shared_ptr<DoubleFabric> fabric_;
  std::string name_;
  std::vector<GidEntry> gids_;
  std::deque<DeviceEvent> events_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

class DoubleCompletionQueue final : public CompletionQueue {
 public:
  DoubleCompletionQueue(std::shared_ptr<DoubleFabric> fabric, unsigned depth);
  ~DoubleCompletionQueue() override;
  DoubleCompletionQueue(const DoubleCompletionQueue&) = delete;
  DoubleCompletionQueue& operator=(const DoubleCompletionQueue&) = delete;
  std::size_t poll(std::span<Completion> completions) override;
  void add(const Completion& completion);

 private:
  std::shared_ptr<DoubleFabric> fabric_;
  std::size_t depth_;
  std::deque<Completion> waiting_;
};

}  // namespace gdr::transport
