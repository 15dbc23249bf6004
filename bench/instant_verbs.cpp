#include "bench/instant_verbs.hpp"

#include <boost/circular_buffer.hpp>
#include <chrono>
#include <cstring>
#include <vector>

#include "src/common/check.hpp"

namespace gdr::bench {

using namespace transport;

namespace {

template <typename T>
void push(boost::circular_buffer<T>& ring, const T& entry) {
  check(!ring.full(), "a ring of the instant wire is full");
  ring.push_back(entry);
}

template <typename T>
T pop(boost::circular_buffer<T>& ring) {
  const T entry = ring.front();
  ring.pop_front();
  return entry;
}

struct Region {
  std::uint64_t address = 0;
  std::uint64_t iova = 0;
};

class InstantQueue final : public CompletionQueue {
 public:
  explicit InstantQueue(unsigned depth) : ring_(depth) {}
  std::size_t poll(std::span<Completion> completions) override {
    std::size_t count = 0;
    while (count < completions.size() && !ring_.empty()) completions[count++] = pop(ring_);
    return count;
  }
  void add(const Completion& completion) { push(ring_, completion); }

 private:
  boost::circular_buffer<Completion> ring_;
};

}  // namespace

class InstantPair;
class InstantWire {
 public:
  std::vector<Region> regions;
  std::vector<InstantPair*> pairs;
  [[nodiscard]] std::byte* at(std::uint32_t key, std::uint64_t address) const {
    const Region& region = regions[key];
    return reinterpret_cast<std::byte*>(region.address + (address - region.iova));
  }
};

class InstantPair final : public QueuePair {
 public:
  InstantPair(std::shared_ptr<InstantWire> wire, InstantQueue& queue, QueuePairSizes sizes)
      : wire_(std::move(wire)),
        queue_(queue),
        receives_(sizes.receives),
        number_(static_cast<std::uint32_t>(wire_->pairs.size())) {
    wire_->pairs.push_back(this);
  }
  ~InstantPair() override { wire_->pairs[number_] = nullptr; }
  InstantPair(const InstantPair&) = delete;
  InstantPair& operator=(const InstantPair&) = delete;
  [[nodiscard]] std::uint32_t number() const override { return number_; }
  Status connect(const QueuePairRoute& route) override {
    peer_ = route.peer_queue_pair;
    return {};
  }
  PostResult post(const SendWork& work) override {
    InstantPair* peer = wire_->pairs[peer_];
    if (peer == nullptr) return PostResult::refused;
    std::byte* local =
        work.size.count > 0 ? wire_->at(work.local_key, work.local_address) : nullptr;
    if (work.opcode == Opcode::send || work.opcode == Opcode::write_with_immediate) {
      check(!peer->receives_.empty(), "no receive is posted on the instant wire");
      const ReceiveWork receive = pop(peer->receives_);
      const bool immediate = work.opcode != Opcode::send;
      if (!immediate && local != nullptr)
        std::memcpy(wire_->at(receive.key, receive.address), local, work.size.count);
      if (immediate && local != nullptr)
        std::memcpy(wire_->at(work.remote_key, work.remote_address), local, work.size.count);
      peer->queue_.add(
          {receive.id, CompletionStatus::ok, true, immediate, work.immediate, work.size});
    } else if (local != nullptr && work.opcode == Opcode::write) {
      std::memcpy(wire_->at(work.remote_key, work.remote_address), local, work.size.count);
    } else if (local != nullptr && work.opcode == Opcode::read) {
      std::memcpy(local, wire_->at(work.remote_key, work.remote_address), work.size.count);
    } else if (local != nullptr) {
      return PostResult::refused;
    }
    queue_.add({work.id, CompletionStatus::ok, false, false, 0, work.size});
    return PostResult::posted;
  }
  PostResult post(const ReceiveWork& work) override {
    push(receives_, work);
    return PostResult::posted;
  }
  void fail() override {}

 private:
  std::shared_ptr<InstantWire> wire_;
  InstantQueue& queue_;
  boost::circular_buffer<ReceiveWork> receives_;
  std::uint32_t number_;
  std::uint32_t peer_ = 0;
};

namespace {

class InstantRegion final : public MemoryRegion {
 public:
  explicit InstantRegion(std::uint32_t key) : key_(key) {}
  [[nodiscard]] std::uint32_t local_key() const override { return key_; }
  [[nodiscard]] std::uint32_t remote_key() const override { return key_; }

 private:
  std::uint32_t key_;
};

class InstantDevice final : public Device {
 public:
  InstantDevice(std::shared_ptr<InstantWire> wire, std::string name)
      : wire_(std::move(wire)), name_(std::move(name)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string sysfs_device() const override { return ""; }
  [[nodiscard]] DeviceLimits limits() const override { return {1024, 16, 4096}; }
  [[nodiscard]] PortState port() const override {
    return {true, true, 0, Bytes{4096}, Bytes{std::uint64_t{1} << 30U}};
  }
  [[nodiscard]] std::vector<GidEntry> gids() const override {
    return {{0, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1}, GidType::rocev2}};
  }
  Result<std::unique_ptr<MemoryRegion>> register_memory(std::uint64_t address, Bytes,
                                                        std::uint64_t iova) override {
    wire_->regions.push_back({address, iova});
    return std::unique_ptr<MemoryRegion>(
        new InstantRegion(static_cast<std::uint32_t>(wire_->regions.size() - 1)));
  }
  Result<std::unique_ptr<MemoryRegion>> register_dma_buf(int, Bytes, Bytes,
                                                         std::uint64_t) override {
    return Status(Cause::registration_refused, "the instant wire knows no descriptors");
  }
  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(unsigned depth) override {
    return std::unique_ptr<CompletionQueue>(new InstantQueue(depth));
  }
  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& queue,
                                                       QueuePairSizes sizes) override {
    return std::unique_ptr<QueuePair>(
        new InstantPair(wire_, static_cast<InstantQueue&>(queue), sizes));
  }
  std::optional<DeviceEvent> next_event() override { return std::nullopt; }

 private:
  std::shared_ptr<InstantWire> wire_;
  std::string name_;
};

class InstantVerbs final : public Verbs {
 public:
  InstantVerbs(std::shared_ptr<InstantWire> wire, std::string nic)
      : wire_(std::move(wire)), nic_(std::move(nic)) {}
  [[nodiscard]] std::vector<std::string> device_names() const override { return {nic_}; }
  Result<std::unique_ptr<Device>> open(const std::string& name) override {
    return std::unique_ptr<Device>(new InstantDevice(wire_, name));
  }
  [[nodiscard]] Duration now() const override {
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  }
  void idle(unsigned) override {}

 private:
  std::shared_ptr<InstantWire> wire_;
  std::string nic_;
};

}  // namespace

std::shared_ptr<InstantWire> make_instant_wire() { return std::make_shared<InstantWire>(); }
std::unique_ptr<Verbs> make_instant_verbs(std::shared_ptr<InstantWire> wire,
                                          const std::string& nic) {
  return std::make_unique<InstantVerbs>(std::move(wire), nic);
}

}  // namespace gdr::bench
