#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>

#include "src/common/error.hpp"
#include "src/memory/backends.hpp"
#include "src/memory/cuda/driver.hpp"
#include "src/memory/cuda/kernels.hpp"
#include "src/memory/free_listeners.hpp"

namespace gdr::memory {
namespace {

/// A dma-buf of GPU memory starts and ends at such pages.
constexpr Bytes gpu_page{std::uint64_t{64} << 10U};

class CudaMemory final : public DeviceMemory {
 public:
  CudaMemory(unsigned index, const std::string& library);
  ~CudaMemory() override;

  [[nodiscard]] std::string name() const override { return fmt::format("cuda{}", index_); }
  [[nodiscard]] std::string sysfs_device() const override { return sysfs_; }
  [[nodiscard]] Bytes granularity() const override { return gpu_page; }
  Result<DevicePointer> allocate(Bytes size) override;
  Status free(DevicePointer pointer) override;
  [[nodiscard]] std::optional<PointerInfo> query(DevicePointer pointer) const override;
  Stream create_stream() override;
  void destroy_stream(Stream stream) override;
  Status copy_in(DevicePointer to, const void* from, Bytes size, Stream stream) override {
    return move(
        to, size, &moved_.copy_engine_in,
        [&](cuda::StreamHandle s) { return driver_.copy_in(to.address, from, size.count, s); },
        stream);
  }
  Status copy_out(void* to, DevicePointer from, Bytes size, Stream stream) override {
    return move(
        from, size, &moved_.copy_engine_out,
        [&](cuda::StreamHandle s) { return driver_.copy_out(to, from.address, size.count, s); },
        stream);
  }
  Status copy_within(DevicePointer to, DevicePointer from, Bytes size, Stream stream) override {
    if (Status inside = check_range(to, size); !inside.ok()) return inside;
    return move(
        from, size, &moved_.copy_engine_within,
        [&](cuda::StreamHandle s) {
          return driver_.copy_within(to.address, from.address, size.count, s);
        },
        stream);
  }
  Status fill(DevicePointer to, std::uint8_t value, Bytes size, Stream stream) override {
    return move(
        to, size, nullptr,
        [&](cuda::StreamHandle s) { return driver_.fill(to.address, value, size.count, s); },
        stream);
  }
  Status reduce(DevicePointer into, DevicePointer from, std::uint64_t count, ElementType type,
                Stream stream) override;
  Result<Event> record(Stream stream) override;
  Result<bool> done(Event event) override;
  Status synchronize(Stream stream) override;
  Result<Exported> export_range(DevicePointer pointer, Bytes size) override;
  Status flush(DevicePointer pointer, Bytes size) override;
  [[nodiscard]] bool needs_flush() const override { return needs_flush_; }
  [[nodiscard]] MoverBytes moved() const override {
    const std::lock_guard lock(mutex_);
    return moved_;
  }
  std::uint64_t on_free(FreeListener listener) override {
    return listeners_.add(std::move(listener));
  }
  [[nodiscard]] bool hears_every_free() const override { return false; }
  void forget_listener(std::uint64_t id) override { listeners_.remove(id); }

 private:
  /// Makes the GPU's context current in this thread while it lives.
  class Current {
   public:
    explicit Current(const CudaMemory& memory) : driver_(memory.driver_) {
      driver_.context_push(memory.context_);
    }
    ~Current() {
      cuda::ContextHandle popped = nullptr;
      driver_.context_pop(&popped);
    }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const cuda::Driver& driver_;
  };

  [[nodiscard]] Status failed(const char* what, cuda::Error error) const {
    return {error == cuda::out_of_memory ? Cause::out_of_memory : Cause::device_failed,
            fmt::format("{}: {}: {}", name(), what, driver_.name_of(error))};
  }
  [[nodiscard]] Status check_range(DevicePointer pointer, Bytes size) const;
  template <typename Call>
  Status move(DevicePointer pointer, Bytes size, Bytes* counter, Call call, Stream stream);
  void load_kernels();

  unsigned index_;
  cuda::Driver driver_;
  cuda::Device device_ = 0;
  cuda::ContextHandle context_ = nullptr;
  cuda::ModuleHandle module_ = nullptr;
  std::array<cuda::FunctionHandle, 4> sums_{};  // by ElementType
  std::string sysfs_;
  bool needs_flush_ = true;
  mutable std::mutex mutex_;  // everything below
  MoverBytes moved_;
  std::map<std::uint64_t, std::uint64_t> allocations_;  // base: number
  std::set<std::uint64_t> going_;                       // bases of allocations that are being freed
  std::map<std::uint64_t, cuda::StreamHandle> streams_;
  std::map<std::uint64_t, cuda::EventHandle> events_;
  std::uint64_t last_stream_ = 0;
  std::uint64_t last_event_ = 0;
  FreeListeners listeners_;
};

CudaMemory::CudaMemory(unsigned index, const std::string& library)
    : index_(index), driver_(library) {
  const auto need = [&](const char* what, cuda::Error error) {
    if (error != cuda::success)
      throw InputError(fmt::format("cuda memory {}: {}: {}", index, what, driver_.name_of(error)));
  };
  int count = 0;
  need("cuInit", driver_.init(0));
  need("cuDeviceGetCount", driver_.device_count(&count));
  if (index >= static_cast<unsigned>(count))
    throw InputError(fmt::format("cuda memory {}: there are {} GPUs", index, count));
  need("cuDeviceGet", driver_.device_get(&device_, static_cast<int>(index)));
  std::array<char, 32> bus{};
  if (driver_.device_bus_id(bus.data(), static_cast<int>(bus.size()), device_) == cuda::success) {
    std::string lower(bus.data());
    for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'F' ? c - 'A' + 'a' : c);
    std::error_code error;
    const auto place = std::filesystem::canonical("/sys/bus/pci/devices/" + lower, error);
    if (!error) sysfs_ = place.string();
  }
  int ordering = 0;
  const bool known = driver_.device_attribute(&ordering, cuda::attribute_writes_ordering,
                                              device_) == cuda::success;
  needs_flush_ = !known || ordering < cuda::ordering_owner;
  need("cuDevicePrimaryCtxRetain", driver_.context_retain(&context_, device_));
  streams_.emplace(0, nullptr);
}

CudaMemory::~CudaMemory() {
  {
    const Current current(*this);
    for (const auto& [id, event] : events_) driver_.event_destroy(event);
    for (const auto& [id, stream] : streams_)
      if (stream != nullptr) driver_.stream_destroy(stream);
    for (const auto& [base, number] : allocations_) driver_.memory_free(base);
    if (module_ != nullptr) driver_.module_unload(module_);
  }
  driver_.context_release(device_);
}

Result<DevicePointer> CudaMemory::allocate(Bytes size) {
  const Current current(*this);
  cuda::Pointer pointer = 0;
  const std::uint64_t granule = gpu_page.count;
  const std::uint64_t rounded =
      (std::max<std::uint64_t>(size.count, 1) + granule - 1) / granule * granule;
  if (const cuda::Error error = driver_.memory_allocate(&pointer, rounded); error != cuda::success)
    return failed("cuMemAlloc", error);
  // Makes copies from and to this memory wait for what they must not overtake. Some allocators'
  // memory refuses it, and does not need it.
  const unsigned on = 1;
  driver_.set_pointer_attribute(&on, cuda::pointer_sync_memops, pointer);
  const std::lock_guard lock(mutex_);
  allocations_[pointer] = next_allocation_number();
  return DevicePointer{pointer};
}

Status CudaMemory::free(DevicePointer pointer) {
  const auto info = query(pointer);
  {
    const std::lock_guard lock(mutex_);
    if (going_.contains(pointer.address))
      return {Cause::invalid,
              fmt::format("{}: the memory at {:#x} was freed twice", name(), pointer.address)};
    if (!info || allocations_.erase(pointer.address) == 0)
      return {Cause::invalid,
              fmt::format("{}: nothing was allocated at {:#x}", name(), pointer.address)};
    going_.insert(pointer.address);  // no longer registered
  }
  listeners_.call(*info);
  const Current current(*this);
  const cuda::Error error = driver_.memory_free(pointer.address);
  const std::lock_guard lock(mutex_);
  going_.erase(pointer.address);
  return error == cuda::success ? Status() : failed("cuMemFree", error);
}

std::optional<PointerInfo> CudaMemory::query(DevicePointer pointer) const {
  const Current current(*this);
  cuda::Pointer base = 0;
  std::size_t size = 0;
  if (driver_.address_range(&base, &size, pointer.address) != cuda::success) return std::nullopt;
  PointerInfo info{{base}, Bytes{size}, 0};
  {
    const std::lock_guard lock(mutex_);
    if (going_.contains(base)) return std::nullopt;
    const auto own = allocations_.find(base);
    if (own != allocations_.end()) info.allocation = own->second;
  }
  if (info.allocation != 0) return info;
  // The driver numbers memory that others allocated. If it returns CUDA_ERROR_INVALID_VALUE (memory
  // mapped by hand), the base is used instead; the top bit keeps both apart from our numbers.
  unsigned long long number = 0;
  const cuda::Error error =
      driver_.pointer_attribute(&number, cuda::pointer_buffer_id, pointer.address);
  info.allocation = (error == cuda::success ? number : base) | (std::uint64_t{1} << 63U);
  return info;
}

Status CudaMemory::check_range(DevicePointer pointer, Bytes size) const {
  const auto info = query(pointer);
  const std::uint64_t offset = info ? pointer.address - info->base.address : 0;
  if (info && size.count <= info->size.count - offset) return {};
  return {Cause::invalid, fmt::format("{}: {} at {:#x} are not inside one allocation", name(),
                                      to_string(size), pointer.address)};
}

template <typename Call>
Status CudaMemory::move(DevicePointer pointer, Bytes size, Bytes* counter, Call call,
                        Stream stream) {
  if (size.count == 0) return {};
  if (Status inside = check_range(pointer, size); !inside.ok()) return inside;
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream.id);
  if (found == streams_.end())
    return {Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id)};
  if (const cuda::Error error = call(found->second); error != cuda::success)
    return failed("a copy or kernel", error);
  if (counter != nullptr) counter->count += size.count;
  return {};
}

void CudaMemory::load_kernels() {
  if (module_ != nullptr) return;
  if (driver_.module_load(&module_, cuda::sum_kernels) != cuda::success) return;
  const std::array<const char*, 4> names{"gdr_sum_float32", "gdr_sum_float16", "gdr_sum_bfloat16",
                                         "gdr_sum_int32"};
  for (std::size_t i = 0; i < names.size(); ++i)
    driver_.module_function(&sums_[i], module_, names[i]);
}

Status CudaMemory::reduce(DevicePointer into, DevicePointer from, std::uint64_t count,
                          ElementType type, Stream stream) {
  const Bytes element = size_of(type);
  if (count > (std::uint64_t{1} << 39U))
    return {Cause::invalid, fmt::format("{}: a sum of {} elements", name(), count)};
  if (Status inside = check_range(from, element * count); !inside.ok()) return inside;
  return move(
      into, element * count, nullptr,
      [&](cuda::StreamHandle s) {
        load_kernels();
        cuda::FunctionHandle kernel = sums_[static_cast<std::size_t>(type)];
        std::uint64_t a = into.address;
        std::uint64_t b = from.address;
        std::uint64_t n = count;
        std::array<void*, 3> arguments{&a, &b, &n};
        const auto blocks = static_cast<unsigned>((count + 255) / 256);
        return kernel == nullptr ? cuda::invalid_value
                                 : driver_.launch(kernel, blocks, 1, 1, 256, 1, 1, 0, s,
                                                  arguments.data(), nullptr);
      },
      stream);
}

Stream CudaMemory::create_stream() {
  const Current current(*this);
  cuda::StreamHandle stream = nullptr;
  if (driver_.stream_create(&stream, cuda::stream_non_blocking) != cuda::success)
    return {};  // the default stream serves as well
  const std::lock_guard lock(mutex_);
  streams_.emplace(++last_stream_, stream);
  return {last_stream_};
}

void CudaMemory::destroy_stream(Stream stream) {
  if (stream.id == 0 || !synchronize(stream).ok()) return;
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream.id);
  if (found == streams_.end()) return;
  driver_.stream_destroy(found->second);
  streams_.erase(found);
}

Result<Event> CudaMemory::record(Stream stream) {
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  const auto found = streams_.find(stream.id);
  if (found == streams_.end())
    return Status(Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id));
  cuda::EventHandle event = nullptr;
  if (const cuda::Error error = driver_.event_create(&event, cuda::event_disable_timing);
      error != cuda::success)
    return failed("cuEventCreate", error);
  if (const cuda::Error error = driver_.event_record(event, found->second);
      error != cuda::success) {
    driver_.event_destroy(event);
    return failed("cuEventRecord", error);
  }
  events_.emplace(++last_event_, event);
  return Event{last_event_};
}

Result<bool> CudaMemory::done(Event event) {
  const Current current(*this);
  const std::lock_guard lock(mutex_);
  const auto found = events_.find(event.id);
  if (found == events_.end())
    return Status(Cause::invalid, fmt::format("{}: there is no event {}", name(), event.id));
  const cuda::Error error = driver_.event_query(found->second);
  if (error == cuda::not_ready) return false;
  driver_.event_destroy(found->second);
  events_.erase(found);
  if (error != cuda::success) return failed("cuEventQuery", error);
  return true;
}

Status CudaMemory::synchronize(Stream stream) {
  const Current current(*this);
  cuda::StreamHandle handle = nullptr;
  {
    const std::lock_guard lock(mutex_);
    const auto found = streams_.find(stream.id);
    if (found == streams_.end())
      return {Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id)};
    handle = found->second;
  }
  if (const cuda::Error error = driver_.stream_synchronize(handle); error != cuda::success)
    return failed("cuStreamSynchronize", error);
  return {};
}

Result<Exported> CudaMemory::export_range(DevicePointer pointer, Bytes size) {
  if (Status inside = check_range(pointer, size); !inside.ok()) return inside;
  if (pointer.address % gpu_page.count != 0 || size.count % gpu_page.count != 0)
    return Status(Cause::registration_refused,
                  fmt::format("{}: {} at {:#x}: the range is not of whole granules of 64KiB",
                              name(), to_string(size), pointer.address));
  const Current current(*this);
  Exported exported;
  int supported = 0;
  int fd = -1;
  if (driver_.handle_for_range == nullptr) {
    exported.no_dma_buf = "the driver is older than CUDA 11.7";
  } else if (driver_.device_attribute(&supported, cuda::attribute_dma_buf, device_) !=
                 cuda::success ||
             supported == 0) {
    exported.no_dma_buf = "the driver exports no dma-buf (it is the open kernel module that does)";
  } else if (const cuda::Error error = driver_.handle_for_range(&fd, pointer.address, size.count,
                                                                cuda::handle_dma_buf, 0);
             error != cuda::success) {
    exported.no_dma_buf = "cuMemGetHandleForAddressRange: " + driver_.name_of(error);
  } else {
    exported.dma_buf = Exported::DmaBuf{UniqueFd(fd), Bytes{0}};
  }
  exported.host_address = pointer.address;  // nvidia-peermem knows what is behind it
  return exported;
}

Status CudaMemory::flush(DevicePointer pointer, Bytes size) {
  if (Status inside = check_range(pointer, size); !inside.ok()) return inside;
  const Current current(*this);
  int options = 0;
  driver_.device_attribute(&options, cuda::attribute_flush_options, device_);
  if (driver_.flush_writes != nullptr && (options & cuda::flush_by_host) != 0) {
    const cuda::Error error =
        driver_.flush_writes(cuda::flush_target_current_context, cuda::flush_to_owner);
    if (error != cuda::success) return failed("cuFlushGPUDirectRDMAWrites", error);
    return {};
  }
  // Without that call, read a byte: a read over the bus follows the writes before it, and
  // SYNC_MEMOPS keeps it in order with the GPU's own work.
  if (size.count == 0) return {};
  std::uint8_t byte = 0;
  const cuda::Error error = driver_.copy_out(&byte, pointer.address, 1, nullptr);
  if (error != cuda::success) return failed("a read to flush", error);
  return synchronize(Stream{});
}

}  // namespace

std::unique_ptr<DeviceMemory> make_cuda_memory(unsigned index, const std::string& library) {
  return std::make_unique<CudaMemory>(index, library);
}

}  // namespace gdr::memory
