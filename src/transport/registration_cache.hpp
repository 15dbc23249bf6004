#pragma once

#include <map>
#include <memory>
#include <string>

#include "memory/device_memory.hpp"
#include "transport/verbs/verbs.hpp"

namespace gdr::transport {

/// Device memory that a NIC may use. The export lives as long as the registration.
struct Registration {
  memory::Exported exported;
  std::unique_ptr<MemoryRegion> region;
  memory::DevicePointer base;
  Bytes size;
  std::string way;  ///< "dma-buf", or "peer memory (dma-buf: why not)"
};

/// Registers a range: by dma-buf first, then by address. The status says what both answered.
Result<Registration> register_range(Device& device, memory::DeviceMemory& memory, memory::DevicePointer pointer, Bytes size);

/// Registrations of one NIC, by allocation: pinning costs far more than a message. Whole allocations are registered; where that is
/// refused, the range alone. What nobody uses goes when the device's window is full, and everything of an allocation when that is freed.
class RegistrationCache {
 public:
  RegistrationCache(Device& device, memory::DeviceMemory& memory) : device_(device), memory_(memory) {}

  Result<std::shared_ptr<Registration>> get(memory::DevicePointer pointer, Bytes size);
  void drop(std::uint64_t allocation);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  Result<Registration> try_register(memory::DevicePointer pointer, Bytes size);
  bool drop_unused();

  Device& device_;
  memory::DeviceMemory& memory_;
  std::multimap<std::uint64_t, std::shared_ptr<Registration>> entries_;  // by allocation
};

}  // namespace gdr::transport
