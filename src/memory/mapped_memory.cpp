#include "src/memory/mapped_memory.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/common/check.hpp"
#include "src/common/splitmix.hpp"
#include "src/memory/arithmetic.hpp"

namespace gdr::memory {
namespace {

constexpr std::uint64_t stale_block = 4096;

bool chance(std::uint64_t seed, std::uint64_t a, std::uint64_t b, double share) {
  return happens(splitmix64(splitmix64(seed ^ a) ^ b), share);
}

}  // namespace

std::uint64_t next_allocation_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

void Backing::copy_out(std::byte* to, const Placed& from, Bytes offset, Bytes size) {
  std::memcpy(to, from.cpu + offset.count, size.count);
}

void Backing::copy_in(const Placed& to, Bytes offset, const std::byte* from, Bytes size) {
  std::memmove(to.cpu + offset.count, from, size.count);
}

MappedMemory::MappedMemory(std::unique_ptr<Backing> backing, const DeviceFaults& faults)
    : backing_(std::move(backing)),
      faults_(faults),
      window_used_(std::make_shared<std::atomic<std::uint64_t>>(0)) {
  queues_.try_emplace(0);
}

MappedMemory::~MappedMemory() {
  run_all();
  for (const auto& [base, allocation] : allocations_) backing_->release(allocation.placed);
}

Result<DevicePointer> MappedMemory::allocate(Bytes size) {
  const std::uint64_t granule = granularity().count;
  if (size.count > (std::uint64_t{1} << 48U))
    return Status(Cause::out_of_memory,
                  fmt::format("{}: {} are more than any device has", name(), to_string(size)));
  const Bytes rounded{(std::max<std::uint64_t>(size.count, 1) + granule - 1) / granule * granule};
  const std::lock_guard lock(mutex_);
  Result<Placed> placed = backing_->place(rounded);
  if (!placed.ok()) return placed.status();
  Allocation allocation;
  allocation.placed = placed.value();
  allocation.number = next_allocation_number();
  if (faults_.stale_reads > 0) {
    allocation.own_view = std::make_unique<std::byte[]>(rounded.count);
    std::memcpy(allocation.own_view.get(), allocation.placed.cpu, rounded.count);
  }
  const std::uint64_t base = allocation.placed.device_base;
  allocations_.emplace(base, std::move(allocation));
  return DevicePointer{base};
}

Status MappedMemory::free(DevicePointer pointer) {
  PointerInfo info;
  {
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(pointer.address);
    if (found == allocations_.end())
      return {Cause::invalid,
              fmt::format("{}: nothing was allocated at {:#x}", name(), pointer.address)};
    if (found->second.going)
      return {Cause::invalid,
              fmt::format("{}: the memory at {:#x} was freed twice", name(), pointer.address)};
    run_all();  // as cuMemFree does
    info = {pointer, found->second.placed.size, found->second.number};
    found->second.going = true;  // no longer registered
  }
  listeners_.call(info);
  const std::lock_guard lock(mutex_);
  const auto found = allocations_.find(pointer.address);
  check(found != allocations_.end(), "memory that is going goes once");
  run_all();
  backing_->release(found->second.placed);
  allocations_.erase(found);
  return {};
}

MappedMemory::Allocation* MappedMemory::find(DevicePointer pointer, Bytes size) {
  return const_cast<Allocation*>(std::as_const(*this).find(pointer, size));
}

const MappedMemory::Allocation* MappedMemory::find(DevicePointer pointer, Bytes size) const {
  auto after = allocations_.upper_bound(pointer.address);
  if (after == allocations_.begin()) return nullptr;
  const Allocation& allocation = std::prev(after)->second;
  const std::uint64_t offset = pointer.address - allocation.placed.device_base;
  const std::uint64_t have = allocation.placed.size.count;
  return offset <= have && size.count <= have - offset ? &allocation : nullptr;
}

Status MappedMemory::outside(DevicePointer pointer, Bytes size) const {
  return {Cause::invalid, fmt::format("{}: {} at {:#x} are not inside one allocation", name(),
                                      to_string(size), pointer.address)};
}

std::optional<PointerInfo> MappedMemory::query(DevicePointer pointer) const {
  const std::lock_guard lock(mutex_);
  const Allocation* allocation = find(pointer, Bytes{1});
  if (allocation == nullptr || allocation->going) return std::nullopt;
  return PointerInfo{{allocation->placed.device_base}, allocation->placed.size, allocation->number};
}

Stream MappedMemory::create_stream() {
  const std::lock_guard lock(mutex_);
  queues_.try_emplace(++last_stream_);
  return {last_stream_};
}

void MappedMemory::destroy_stream(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto found = queues_.find(stream.id);
  if (stream.id == 0 || found == queues_.end()) return;
  run_until(found->second, found->second.issued);
  queues_.erase(found);
  std::erase_if(marks_, [&](const auto& mark) { return mark.second.stream == stream.id; });
}

Status MappedMemory::issue(Stream stream, const Command& command) {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(stream.id);
  if (queue == queues_.end())
    return {Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id)};
  const bool writes = command.kind != Kind::copy_out;
  const bool reads = command.kind != Kind::copy_in && command.kind != Kind::fill;
  if (command.size.count == 0) return {};
  if (writes && find(command.to, command.size) == nullptr) return outside(command.to, command.size);
  if (reads && find(command.from, command.size) == nullptr)
    return outside(command.from, command.size);
  queue->second.waiting.push_back(command);
  ++queue->second.issued;
  if (faults_.copy_delay == 0) run_until(queue->second, queue->second.issued);
  return {};
}

Status MappedMemory::copy_in(DevicePointer to, const void* from, Bytes size, Stream stream) {
  return issue(stream, {.kind = Kind::copy_in, .to = to, .host_from = from, .size = size});
}

Status MappedMemory::copy_out(void* to, DevicePointer from, Bytes size, Stream stream) {
  return issue(stream, {.kind = Kind::copy_out, .from = from, .host_to = to, .size = size});
}

Status MappedMemory::copy_within(DevicePointer to, DevicePointer from, Bytes size, Stream stream) {
  return issue(stream, {.kind = Kind::copy_within, .to = to, .from = from, .size = size});
}

Status MappedMemory::fill(DevicePointer to, std::uint8_t value, Bytes size, Stream stream) {
  return issue(stream, {.kind = Kind::fill, .to = to, .size = size, .value = value});
}

Status MappedMemory::reduce(DevicePointer into, DevicePointer from, std::uint64_t count,
                            ElementType type, Stream stream) {
  const Bytes element = size_of(type);
  if (count > (std::uint64_t{1} << 48U) / element.count)
    return outside(into, Bytes{~std::uint64_t{0}});
  return issue(
      stream,
      {.kind = Kind::reduce, .to = into, .from = from, .size = element * count, .type = type});
}

Result<Event> MappedMemory::record(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(stream.id);
  if (queue == queues_.end())
    return Status(Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id));
  marks_.emplace(++last_event_, Mark{stream.id, queue->second.issued, 0});
  return Event{last_event_};
}

Result<bool> MappedMemory::done(Event event) {
  const std::lock_guard lock(mutex_);
  const auto mark = marks_.find(event.id);
  if (mark == marks_.end())
    return Status(Cause::invalid, fmt::format("{}: there is no event {}", name(), event.id));
  Queue& queue = queues_.at(mark->second.stream);
  if (queue.finished < mark->second.after) {
    if (++mark->second.asked < faults_.copy_delay) return false;
    run_until(queue, mark->second.after);
  }
  marks_.erase(mark);
  return true;
}

Status MappedMemory::synchronize(Stream stream) {
  const std::lock_guard lock(mutex_);
  const auto queue = queues_.find(stream.id);
  if (queue == queues_.end())
    return {Cause::invalid, fmt::format("{}: there is no stream {}", name(), stream.id)};
  run_until(queue->second, queue->second.issued);
  return {};
}

void MappedMemory::run_until(Queue& queue, std::uint64_t number) {
  for (; queue.finished < number; ++queue.finished) {
    execute(queue.waiting.front());
    queue.waiting.pop_front();
  }
}

void MappedMemory::run_all() {
  for (auto& [id, queue] : queues_) run_until(queue, queue.issued);
}

void MappedMemory::store(DevicePointer to, const std::byte* bytes, Bytes size) {
  Allocation* allocation = find(to, size);
  check(allocation != nullptr, "memory was freed below an operation");
  const std::uint64_t offset = to.address - allocation->placed.device_base;
  std::memmove(allocation->placed.cpu + offset, bytes, size.count);
  if (allocation->own_view != nullptr)
    std::memcpy(allocation->own_view.get() + offset, allocation->placed.cpu + offset, size.count);
}

const std::byte* MappedMemory::load(DevicePointer from, Bytes size) {
  Allocation* allocation = find(from, size);
  check(allocation != nullptr, "memory was freed below an operation");
  const std::uint64_t offset = from.address - allocation->placed.device_base;
  if (allocation->own_view == nullptr) return allocation->placed.cpu + offset;
  // Some blocks happen to be up to date; the others stay stale until a flush.
  ++allocation->reads;
  for (std::uint64_t at = offset; at < offset + size.count;) {
    const std::uint64_t end = std::min((at / stale_block + 1) * stale_block, offset + size.count);
    if (!chance(faults_.seed ^ allocation->reads, at / stale_block, allocation->placed.size.count,
                faults_.stale_reads))
      std::memcpy(allocation->own_view.get() + at, allocation->placed.cpu + at, end - at);
    at = end;
  }
  return allocation->own_view.get() + offset;
}

void MappedMemory::copy_in_now(const Command& command) {
  Allocation* to = find(command.to, command.size);
  check(to != nullptr, "memory was freed below a copy");
  const Bytes offset{command.to.address - to->placed.device_base};
  backing_->copy_in(to->placed, offset, static_cast<const std::byte*>(command.host_from),
                    command.size);
  if (to->own_view != nullptr)
    std::memcpy(to->own_view.get() + offset.count, to->placed.cpu + offset.count,
                command.size.count);
}

void MappedMemory::copy_out_now(const Command& command) {
  const Allocation* from = find(command.from, command.size);
  check(from != nullptr, "memory was freed below a copy");
  auto* to = static_cast<std::byte*>(command.host_to);
  if (from->own_view != nullptr)
    std::memcpy(to, load(command.from, command.size), command.size.count);
  else
    backing_->copy_out(to, from->placed, Bytes{command.from.address - from->placed.device_base},
                       command.size);
}

void MappedMemory::execute(const Command& command) {
  const Bytes size = command.size;
  switch (command.kind) {
    case Kind::copy_in:
      copy_in_now(command);
      break;
    case Kind::copy_out:
      copy_out_now(command);
      break;
    case Kind::copy_within:
      store(command.to, load(command.from, size), size);
      break;
    case Kind::fill: {
      const std::vector<std::byte> bytes(size.count, std::byte{command.value});
      store(command.to, bytes.data(), size);
      break;
    }
    case Kind::reduce: {
      const std::byte* into = load(command.to, size);
      std::vector<std::byte> sum(into, into + size.count);
      add_elements(sum.data(), load(command.from, size), size.count / size_of(command.type).count,
                   command.type);
      store(command.to, sum.data(), size);
      break;
    }
  }
  count(command.kind, size);
}

void MappedMemory::count(Kind kind, Bytes size) {
  if (kind == Kind::fill || kind == Kind::reduce)
    return;  // work inside the device, which moves nothing
  Bytes* by = &moved_.cpu;
  if (backing_->has_copy_engine())
    by = kind == Kind::copy_in    ? &moved_.copy_engine_in
         : kind == Kind::copy_out ? &moved_.copy_engine_out
                                  : &moved_.copy_engine_within;
  by->count += size.count;
}

Result<Exported> MappedMemory::export_range(DevicePointer pointer, Bytes size) {
  const std::lock_guard lock(mutex_);
  const Allocation* allocation = find(pointer, size);
  if (allocation == nullptr || allocation->going) return outside(pointer, size);
  const auto refuse = [&](const std::string& why) {
    return Status(Cause::registration_refused, fmt::format("{}: {} at {:#x}: {}", name(),
                                                           to_string(size), pointer.address, why));
  };
  const std::uint64_t granule = granularity().count;
  if (pointer.address % granule != 0 || size.count % granule != 0)
    return refuse(
        fmt::format("the range is not of whole granules of {}", to_string(granularity())));
  if (faults_.largest_registration && size > *faults_.largest_registration)
    return refuse(
        fmt::format("the driver registers at most {}", to_string(*faults_.largest_registration)));
  Exported exported;
  if (faults_.bar_window) {
    if (*window_used_ + size.count > faults_.bar_window->count)
      return refuse(fmt::format("{} of the BAR window of {} are taken",
                                to_string(Bytes{*window_used_}), to_string(*faults_.bar_window)));
    *window_used_ += size.count;
    exported.window =
        std::shared_ptr<void>(nullptr, [used = window_used_, size](void*) { *used -= size.count; });
  }
  const std::uint64_t offset = pointer.address - allocation->placed.device_base;
  if (allocation->placed.fd >= 0 && faults_.dma_buf) {
    exported.dma_buf = Exported::DmaBuf{UniqueFd(fcntl(allocation->placed.fd, F_DUPFD_CLOEXEC, 0)),
                                        allocation->placed.fd_offset + Bytes{offset}};
  } else {
    exported.no_dma_buf =
        faults_.dma_buf ? "this memory has no descriptor" : "the driver exports no dma-buf";
  }
  // Without a peer-memory driver the address may still be tried; the kernel then finds no pages
  // behind it.
  exported.host_address = faults_.peer_memory
                              ? reinterpret_cast<std::uint64_t>(allocation->placed.cpu + offset)
                              : pointer.address;
  return exported;
}

Status MappedMemory::flush(DevicePointer pointer, Bytes size) {
  const std::lock_guard lock(mutex_);
  Allocation* allocation = find(pointer, size);
  if (allocation == nullptr) return outside(pointer, size);
  const std::uint64_t offset = pointer.address - allocation->placed.device_base;
  if (allocation->own_view != nullptr)
    std::memcpy(allocation->own_view.get() + offset, allocation->placed.cpu + offset, size.count);
  return {};
}

MoverBytes MappedMemory::moved() const {
  const std::lock_guard lock(mutex_);
  return moved_;
}

}  // namespace gdr::memory
