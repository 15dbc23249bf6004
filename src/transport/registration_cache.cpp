#include "transport/registration_cache.hpp"

#include <fmt/format.h>

namespace gdr::transport {

Result<Registration> register_range(Device& device, memory::DeviceMemory& memory, memory::DevicePointer pointer, Bytes size) {
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
      registration.way = "dma-buf";
      return registration;
    }
    no_dma_buf = region.status().text();
  }
  if (!registration.exported.host_address)
    return Status(Cause::registration_refused,
                  fmt::format("dma-buf: {}; peer memory: {}", no_dma_buf, registration.exported.no_host_address));
  auto region = device.register_memory(*registration.exported.host_address, size, pointer.address);
  if (!region.ok())
    return Status(Cause::registration_refused, fmt::format("dma-buf: {}; peer memory: {}", no_dma_buf, region.status().text()));
  registration.region = std::move(region.value());
  registration.way = fmt::format("peer memory (dma-buf: {})", no_dma_buf);
  return registration;
}

bool RegistrationCache::drop_unused() {
  return std::erase_if(entries_, [](const auto& entry) { return entry.second.use_count() == 1; }) > 0;
}

Result<RegisteredRange> RegistrationCache::try_register(memory::DevicePointer pointer, Bytes size) {
  RegisteredRange range;
  range.base = pointer;
  range.size = size;
  for (Device* nic : nics_) {
    auto registration = register_range(*nic, memory_, pointer, size);
    if (!registration.ok() && drop_unused()) registration = register_range(*nic, memory_, pointer, size);
    if (!registration.ok()) return registration.status();
    const MemoryRegion& region = *registration.value().region;
    range.keys.push_back({region.local_key(), region.remote_key()});
    range.registrations.push_back(std::move(registration.value()));
  }
  return range;
}

std::shared_ptr<const RegisteredRange> RegistrationCache::find(memory::DevicePointer pointer, Bytes size) const {
  const auto after = entries_.upper_bound(pointer);
  if (after == entries_.begin()) return nullptr;
  // Those of one allocation may overlap: the next one back may reach further.
  const std::uint64_t allocation = std::prev(after)->second->allocation;
  for (auto entry = after; entry != entries_.begin();) {
    --entry;
    if (entry->second->allocation != allocation) break;
    if (entry->second->has(pointer, size)) return entry->second;
  }
  return nullptr;
}

Result<std::shared_ptr<const RegisteredRange>> RegistrationCache::get(memory::DevicePointer pointer, Bytes size) {
  if (auto known = find(pointer, size)) return known;
  const auto info = memory_.query(pointer);
  if (!info || size.count > info->size.count - (pointer.address - info->base.address))
    return Status(Cause::invalid,
                  fmt::format("{}: {} at {:#x} are not inside one allocation", memory_.name(), to_string(size), pointer.address));
  auto range = try_register(info->base, info->size);
  if (!range.ok()) {
    const std::uint64_t granule = memory_.granularity().count;
    const std::uint64_t start = pointer.address / granule * granule;
    const std::uint64_t end = (pointer.address + std::max<std::uint64_t>(size.count, 1) + granule - 1) / granule * granule;
    const bool smaller = start > info->base.address || end < info->base.address + info->size.count;
    if (smaller) range = try_register({start}, Bytes{end - start});
  }
  if (!range.ok()) return range.status();
  range.value().allocation = info->allocation;
  auto shared = std::make_shared<const RegisteredRange>(std::move(range.value()));
  entries_.emplace(shared->base, shared);
  return shared;
}

void RegistrationCache::drop(std::uint64_t allocation) {
  std::erase_if(entries_, [&](const auto& entry) { return entry.second->allocation == allocation; });
}

}  // namespace gdr::transport
