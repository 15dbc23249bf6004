#include "src/transport/engine/registration_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {

Result<memory::PointerInfo> find_allocation(const memory::DeviceMemory& memory,
                                            memory::DevicePointer pointer, Bytes size) {
  const auto info = memory.query(pointer);
  if (info && size.count <= info->size.count - (pointer.address - info->base.address)) return *info;
  return Status(Cause::invalid, fmt::format("{}: {} at {:#x} are not inside one allocation",
                                            memory.name(), to_string(size), pointer.address));
}

Result<Registration> register_range(Device& device, memory::DeviceMemory& memory,
                                    memory::DevicePointer pointer, Bytes size) {
  auto exported = memory.export_range(pointer, size);
  if (!exported.ok()) return exported.status();
  Registration registration;
  registration.exported = std::move(exported.value());
  std::string no_dma_buf = registration.exported.no_dma_buf;
  if (registration.exported.dma_buf) {
    const auto& dma_buf = *registration.exported.dma_buf;
    auto region = device.register_dma_buf(dma_buf.fd.get(), dma_buf.offset, size, pointer.address);
    if (region.ok()) {
      registration.region = std::move(region.value());
      registration.method = "dma-buf";
      return registration;
    }
    no_dma_buf = region.status().text();
  }
  if (!registration.exported.host_address)
    return Status(Cause::registration_refused,
                  fmt::format("dma-buf: {}; peer memory: {}", no_dma_buf,
                              registration.exported.no_host_address));
  auto region = device.register_memory(*registration.exported.host_address, size, pointer.address);
  if (!region.ok())
    return Status(Cause::registration_refused,
                  fmt::format("dma-buf: {}; peer memory: {}", no_dma_buf, region.status().text()));
  registration.region = std::move(region.value());
  registration.method = fmt::format("peer memory (dma-buf: {})", no_dma_buf);
  return registration;
}

bool RegistrationCache::drop_unused() {
  last_ = nullptr;
  return std::erase_if(entries_, [](const auto& entry) { return entry.second.use_count() == 1; }) >
         0;
}

std::size_t RegistrationCache::in_use() const {
  return static_cast<std::size_t>(
      std::count_if(entries_.begin(), entries_.end(),
                    [](const auto& entry) { return entry.second.use_count() > 1; }));
}

Result<RegisteredRange> RegistrationCache::register_once(memory::DevicePointer pointer,
                                                         Bytes size) {
  RegisteredRange range;
  range.base = pointer;
  range.size = size;
  for (Device* nic : nics_) {
    auto registration = register_range(*nic, memory_, pointer, size);
    if (!registration.ok()) return registration.status();
    const MemoryRegion& region = *registration.value().region;
    range.keys.push_back({region.local_key(), region.remote_key()});
    range.registrations.push_back(std::move(registration.value()));
  }
  return range;
}

/// Unused registrations are dropped for a range once. If it is refused even so, they were not the
/// reason; it is tried again only when fewer are in use.
Result<RegisteredRange> RegistrationCache::try_register(std::uint64_t allocation,
                                                        memory::DevicePointer pointer, Bytes size) {
  auto range = register_once(pointer, size);
  if (range.ok()) return range;
  const auto [first, last] = refused_.equal_range(allocation);
  const auto before = std::find_if(first, last, [&](const auto& entry) {
    return entry.second.base == pointer && entry.second.size == size;
  });
  const std::size_t used = in_use();
  if (before != last && before->second.in_use <= used) return range;
  if (drop_unused()) range = register_once(pointer, size);
  if (range.ok()) return range;
  if (before != last) before->second.in_use = used;
  else refused_.emplace(allocation, Refused{pointer, size, used});
  return range;
}

std::shared_ptr<const RegisteredRange> RegistrationCache::find(std::uint64_t allocation,
                                                               memory::DevicePointer pointer,
                                                               Bytes size) {
  const auto [first, last] = entries_.equal_range(allocation);
  for (auto entry = first; entry != last; ++entry)
    if (entry->second->has(pointer, size)) return *(last_ = &entry->second);
  return nullptr;
}

Result<std::shared_ptr<const RegisteredRange>> RegistrationCache::get(memory::DevicePointer pointer,
                                                                      Bytes size) {
  const auto found = find_allocation(memory_, pointer, size);
  if (!found.ok()) return found.status();
  const memory::PointerInfo* info = &found.value();
  if (auto known = find(info->allocation, pointer, size)) return known;
  auto range = try_register(info->allocation, info->base, info->size);
  if (!range.ok()) {
    const std::uint64_t granule = memory_.granularity().count;
    const std::uint64_t start = pointer.address / granule * granule;
    const std::uint64_t end =
        (pointer.address + std::max<std::uint64_t>(size.count, 1) + granule - 1) / granule *
        granule;
    const bool smaller = start > info->base.address || end < info->base.address + info->size.count;
    if (smaller) range = try_register(info->allocation, {start}, Bytes{end - start});
  }
  if (!range.ok()) return range.status();
  auto shared = std::make_shared<const RegisteredRange>(std::move(range.value()));
  return *(last_ = &entries_.emplace(info->allocation, std::move(shared))->second);
}

void RegistrationCache::drop(std::uint64_t allocation) {
  last_ = nullptr;
  entries_.erase(allocation);
  refused_.erase(allocation);
}

}  // namespace gdr::transport
