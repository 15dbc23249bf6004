#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/memory/device_memory.hpp"
#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

/// Device memory that a NIC may use. The export lives as long as the registration.
struct Registration {
  memory::Exported exported;
  std::unique_ptr<MemoryRegion> region;
  std::string method;  ///< "dma-buf", or "peer memory (dma-buf: why not)"
};

/// The allocation that contains the whole range; Cause::invalid if there is none.
Result<memory::PointerInfo> find_allocation(const memory::DeviceMemory& memory,
                                            memory::DevicePointer pointer, Bytes size);

/// Registers a range: by dma-buf first, then by address. The status says why both failed.
Result<Registration> register_range(Device& device, memory::DeviceMemory& memory,
                                    memory::DevicePointer pointer, Bytes size);

/// Device memory that every NIC of a transport may use.
struct RegisteredRange {
  struct Keys {
    std::uint32_t local = 0;
    std::uint32_t remote = 0;
  };
  memory::DevicePointer base;
  Bytes size;
  std::vector<Registration> registrations;  ///< one per NIC
  std::vector<Keys> keys;                   ///< one per NIC
  [[nodiscard]] bool has(memory::DevicePointer pointer, Bytes wanted) const {
    const std::uint64_t offset = pointer.address - base.address;
    return pointer >= base && offset < size.count && wanted.count <= size.count - offset;
  }
};

/// Registrations by allocation: pinning costs far more than a message. Whole allocations are
/// registered; where that is refused, the range alone. Unused entries are dropped when the device's
/// window is full, and all entries of an allocation when its backend frees it. Memory that is freed
/// past the backend is no longer found, because allocation numbers are never used again.
class RegistrationCache {
 public:
  RegistrationCache(std::vector<Device*> nics, memory::DeviceMemory& memory)
      : nics_(std::move(nics)), memory_(memory) {}

  /// Null when the range, of this allocation, is not registered yet.
  [[nodiscard]] std::shared_ptr<const RegisteredRange> find(std::uint64_t allocation,
                                                            memory::DevicePointer pointer,
                                                            Bytes size);
  /// The range that was found or registered last, if it contains this one; else null. Does not
  /// query the memory: only for memory that reports every free, after which nothing is found.
  [[nodiscard]] std::shared_ptr<const RegisteredRange> find_again(memory::DevicePointer pointer,
                                                                  Bytes size) const {
    return last_ != nullptr && (*last_)->has(pointer, size) ? *last_ : nullptr;
  }
  Result<std::shared_ptr<const RegisteredRange>> get(memory::DevicePointer pointer, Bytes size);
  void drop(std::uint64_t allocation);
  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  Result<RegisteredRange> try_register(std::uint64_t allocation, memory::DevicePointer pointer,
                                       Bytes size);
  Result<RegisteredRange> register_once(memory::DevicePointer pointer, Bytes size);
  [[nodiscard]] std::size_t in_use() const;
  bool drop_unused();

  std::vector<Device*> nics_;
  memory::DeviceMemory& memory_;
  std::multimap<std::uint64_t, std::shared_ptr<const RegisteredRange>> entries_;  // by allocation
  const std::shared_ptr<const RegisteredRange>* last_ = nullptr;  // one of the entries
  struct Refused {
    memory::DevicePointer base;
    Bytes size;
    std::size_t in_use;  // how many entries could not be dropped for it
  };
  std::multimap<std::uint64_t, Refused>
      refused_;  // by allocation: what was refused with everything else dropped
};

}  // namespace gdr::transport
