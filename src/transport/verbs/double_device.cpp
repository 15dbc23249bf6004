#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "src/common/check.hpp"
#include "src/transport/verbs/double_fabric.hpp"
#include "src/transport/verbs/double_pair.hpp"

namespace gdr::transport {
namespace {

constexpr std::uint64_t page = 4096;

/// Whether the process may read every page, asked of the kernel: a PROT_NONE mapping fails as it
/// does with ibv_reg_mr.
bool has_pages(std::uint64_t address, Bytes size) {
  for (std::uint64_t at = address / page * page; at < address + size.count; at += page) {
    char byte = 0;
    const iovec local = {&byte, 1};
    const iovec remote = {reinterpret_cast<void*>(at), 1};
    if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != 1) return false;
  }
  return true;
}

class DoubleRegistration final : public MemoryRegion {
 public:
  DoubleRegistration(std::shared_ptr<DoubleFabric> fabric, const DoubleRegion& region, void* unmap,
                     std::size_t unmap_size)
      : fabric_(std::move(fabric)), unmap_(unmap), unmap_size_(unmap_size) {
    const std::lock_guard lock(fabric_->mutex);
    key_ = (++fabric_->last_key << 8U) | 0x5aU;
    fabric_->regions.emplace(key_, region);
    ++fabric_->live;
  }
  ~DoubleRegistration() override {
    {
      const std::lock_guard lock(fabric_->mutex);
      fabric_->regions.erase(key_);
      --fabric_->live;
    }
    if (unmap_ != nullptr) munmap(unmap_, unmap_size_);
  }
  DoubleRegistration(const DoubleRegistration&) = delete;
  DoubleRegistration& operator=(const DoubleRegistration&) = delete;
  [[nodiscard]] std::uint32_t local_key() const override { return key_; }
  [[nodiscard]] std::uint32_t remote_key() const override { return key_; }

 private:
  std::shared_ptr<DoubleFabric> fabric_;
  void* unmap_;
  std::size_t unmap_size_;
  std::uint32_t key_ = 0;
};

Status refused(const std::string& device, const char* call, Bytes size, int error) {
  return {Cause::registration_refused, fmt::format("{}: {} of {}: {} (errno {})", device, call,
                                                   to_string(size), std::strerror(error), error)};
}

Gid ipv4_gid(unsigned host, unsigned nic) {
  Gid gid{};
  gid[10] = gid[11] = 0xff;
  gid[12] = 10;
  gid[14] = static_cast<std::uint8_t>(host);
  gid[15] = static_cast<std::uint8_t>(nic + 1);
  return gid;
}

Gid link_local_gid(unsigned host, unsigned nic) {
  Gid gid{};
  gid[0] = 0xfe;
  gid[1] = 0x80;
  gid[14] = static_cast<std::uint8_t>(host);
  gid[15] = static_cast<std::uint8_t>(nic + 1);
  return gid;
}

class DoubleVerbs final : public Verbs {
 public:
  DoubleVerbs(std::shared_ptr<DoubleFabric> fabric, const std::vector<std::string>& names)
      : fabric_(std::move(fabric)), names_(names) {
    const std::lock_guard lock(fabric_->mutex);
    host_ = ++fabric_->hosts;
  }
  [[nodiscard]] std::vector<std::string> device_names() const override { return names_; }
  Result<std::unique_ptr<Device>> open(const std::string& name) override {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end())
      return Status(Cause::invalid,
                    fmt::format("there is no RDMA device {}, or it cannot be opened", name));
    return std::unique_ptr<Device>(
        new DoubleDevice(fabric_, name, host_, static_cast<unsigned>(found - names_.begin())));
  }
  [[nodiscard]] Duration now() const override { return transport::now(*fabric_); }
  void idle(unsigned) override {
    const std::lock_guard lock(fabric_->mutex);
    fabric_->advance();
  }

 private:
  std::shared_ptr<DoubleFabric> fabric_;
  std::vector<std::string> names_;
  unsigned host_ = 0;
};

}  // namespace

DoubleDevice::DoubleDevice(std::shared_ptr<DoubleFabric> fabric, std::string name, unsigned host,
                           unsigned nic)
    : fabric_(std::move(fabric)), name_(std::move(name)) {
  gids_ = {{0, link_local_gid(host, nic), GidType::rocev1},
           {1, link_local_gid(host, nic), GidType::rocev2},
           {2, ipv4_gid(host, nic), GidType::rocev2}};
  const std::lock_guard lock(fabric_->mutex);
  for (const GidEntry& entry : gids_) fabric_->by_gid[entry.gid] = this;
  ++fabric_->live;
  watch_port();
}

std::vector<GidEntry> DoubleDevice::gids() const {
  const std::lock_guard lock(fabric_->mutex);
  std::vector<GidEntry> entries = gids_;
  if (!fabric_->has_address(name_)) entries.pop_back();
  return entries;
}

void DoubleDevice::watch_port() {
  for (const auto& outage : fabric_->options.faults.outages) {
    if (outage.device != name_) continue;
    const auto tell = [this, alive = std::weak_ptr<bool>(alive_)](DeviceEvent event) {
      if (!alive.expired()) events_.push_back(event);
    };
    fabric_->at(outage.at, [tell] { tell(DeviceEvent::port_down); });
    fabric_->at(outage.at + outage.length, [tell] { tell(DeviceEvent::port_up); });
  }
}

DoubleDevice::~DoubleDevice() {
  const std::lock_guard lock(fabric_->mutex);
  std::erase_if(fabric_->by_gid, [this](const auto& entry) { return entry.second == this; });
  alive_.reset();
  --fabric_->live;
}

PortState DoubleDevice::port() const {
  const std::lock_guard lock(fabric_->mutex);
  return {fabric_->port_up(name_), true, 0, fabric_->options.mtu, fabric_->options.largest_message};
}

std::optional<DeviceEvent> DoubleDevice::next_event() {
  const std::lock_guard lock(fabric_->mutex);
  if (events_.empty()) return std::nullopt;
  const DeviceEvent event = events_.front();
  events_.pop_front();
  return event;
}

Result<std::unique_ptr<MemoryRegion>> DoubleDevice::register_memory(std::uint64_t address,
                                                                    Bytes size,
                                                                    std::uint64_t iova) {
  const int error = fabric_->options.faults.refuse_memory;
  if (error != 0) return refused(name_, "ibv_reg_mr", size, error);
  if (!has_pages(address, size)) return refused(name_, "ibv_reg_mr", size, EFAULT);
  const DoubleRegion region{iova, size, reinterpret_cast<std::byte*>(address), address != iova,
                            this};
  return std::unique_ptr<MemoryRegion>(new DoubleRegistration(fabric_, region, nullptr, 0));
}

Result<std::unique_ptr<MemoryRegion>> DoubleDevice::register_dma_buf(int fd, Bytes offset,
                                                                     Bytes size,
                                                                     std::uint64_t iova) {
  const int error = fabric_->options.faults.refuse_dma_buf;
  if (error != 0) return refused(name_, "ibv_reg_dmabuf_mr", size, error);
  const std::uint64_t start = offset.count / page * page;
  const std::size_t length = size.count + (offset.count - start);
  void* mapped =
      mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(start));
  if (mapped == MAP_FAILED) return refused(name_, "ibv_reg_dmabuf_mr", size, errno);
  const DoubleRegion region{iova, size, static_cast<std::byte*>(mapped) + (offset.count - start),
                            true, this};
  return std::unique_ptr<MemoryRegion>(new DoubleRegistration(fabric_, region, mapped, length));
}

Result<std::unique_ptr<CompletionQueue>> DoubleDevice::create_completion_queue(unsigned depth) {
  return std::unique_ptr<CompletionQueue>(new DoubleCompletionQueue(fabric_, depth));
}

Result<std::unique_ptr<QueuePair>> DoubleDevice::create_queue_pair(CompletionQueue& queue,
                                                                   QueuePairSizes sizes) {
  if (sizes.sends > limits().queue_depth || sizes.receives > limits().queue_depth)
    return Status(Cause::device_failed, fmt::format("{}: a new queue pair: {} (errno {})", name_,
                                                    std::strerror(EINVAL), EINVAL));
  return std::unique_ptr<QueuePair>(
      new DoublePair(fabric_, *this, static_cast<DoubleCompletionQueue&>(queue), sizes));
}

DoubleCompletionQueue::DoubleCompletionQueue(std::shared_ptr<DoubleFabric> fabric, unsigned depth)
    : fabric_(std::move(fabric)), depth_(depth) {
  const std::lock_guard lock(fabric_->mutex);
  ++fabric_->live;
}

DoubleCompletionQueue::~DoubleCompletionQueue() {
  const std::lock_guard lock(fabric_->mutex);
  --fabric_->live;
}

void DoubleCompletionQueue::add(const Completion& completion) {
  waiting_.push_back(completion);
  check(waiting_.size() <= depth_,
        "a completion queue overflows: its owner posts more than it has room for");
}

std::size_t DoubleCompletionQueue::poll(std::span<Completion> completions) {
  const std::lock_guard lock(fabric_->mutex);
  const std::size_t count = std::min(completions.size(), waiting_.size());
  std::copy_n(waiting_.begin(), count, completions.begin());
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
  return count;
}

std::unique_ptr<Verbs> make_double(std::shared_ptr<DoubleFabric> fabric,
                                   const std::vector<std::string>& names) {
  return std::make_unique<DoubleVerbs>(std::move(fabric), names);
}

}  // namespace gdr::transport
