#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "src/memory/device_memory.hpp"

namespace gdr::memory {

/// The listeners to call before memory is freed.
class FreeListeners {
 public:
  std::uint64_t add(DeviceMemory::FreeListener listener) {
    const std::unique_lock lock(mutex_);
    listeners_.emplace_back(++last_, std::move(listener));
    return last_;
  }
  /// Waits for calls in progress.
  void remove(std::uint64_t id) {
    const std::unique_lock lock(mutex_);
    std::erase_if(listeners_, [id](const auto& entry) { return entry.first == id; });
  }
  void call(const PointerInfo& info) const {
    const std::shared_lock lock(mutex_);
    for (const auto& [id, listener] : listeners_) listener(info);
  }

 private:
  mutable std::shared_mutex mutex_;
  std::uint64_t last_ = 0;
  std::vector<std::pair<std::uint64_t, DeviceMemory::FreeListener>> listeners_;
};

/// Numbers that no allocation of this process has had.
std::uint64_t next_allocation_number();

}  // namespace gdr::memory
