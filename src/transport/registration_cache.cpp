#include "transport/registration_cache.hpp"

#include <fmt/format.h>

namespace gdr::transport {

Result<Registration> register_range(Device& device, memory::DeviceMemory& memory, memory::DevicePointer pointer, Bytes size) {
  auto exported = memory.export_range(pointer, size);
  if (!exported.ok()) return exported.status();
  Registration registration;
  registration.exported = std::move(exported.value());
  registration.base = pointer;
  registration.size = size;
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

Result<Registration> RegistrationCache::try_register(memory::DevicePointer pointer, Bytes size) {
  auto registration = register_range(device_, memory_, pointer, size);
  if (!registration.ok() && drop_unused()) registration = register_range(device_, memory_, pointer, size);
  return registration;
}

Result<std::shared_ptr<Registration>> RegistrationCache::get(memory::DevicePointer pointer, Bytes size) {
  const auto info = memory_.query(pointer);
  if (!info || size.count > info->size.count - (pointer.address - info->base.address))
    return Status(Cause::invalid,
                  fmt::format("{}: {} at {:#x} are not inside one allocation", memory_.name(), to_string(size), pointer.address));
  const auto [first, last] = entries_.equal_range(info->allocation);
  for (auto entry = first; entry != last; ++entry) {
    const Registration& known = *entry->second;
    if (pointer >= known.base && pointer.address + size.count <= known.base.address + known.size.count) return entry->second;
  }
  auto registration = try_register(info->base, info->size);
  if (!registration.ok()) {
    const std::uint64_t granule = memory_.granularity().count;
    const std::uint64_t start = pointer.address / granule * granule;
    const std::uint64_t end = (pointer.address + std::max<std::uint64_t>(size.count, 1) + granule - 1) / granule * granule;
    const bool smaller = start > info->base.address || end < info->base.address + info->size.count;
    if (smaller) registration = try_register({start}, Bytes{end - start});
  }
  if (!registration.ok()) return registration.status();
  auto shared = std::make_shared<Registration>(std::move(registration.value()));
  entries_.emplace(info->allocation, shared);
  return shared;
}

void RegistrationCache::drop(std::uint64_t allocation) { entries_.erase(allocation); }

}  // namespace gdr::transport
