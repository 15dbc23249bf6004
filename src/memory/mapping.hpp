#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "src/common/units.hpp"

namespace gdr::memory {

/// A mapping of the process, unmapped with its owner.
class Mapping {
 public:
  Mapping() = default;
  /// Address space without access, its start aligned to `alignment` (a power of two). Not open when
  /// there is none.
  static Mapping reserve(Bytes size, Bytes alignment);
  /// `size` bytes of a descriptor, readable and writable. Not open when the system refuses; errno
  /// says why.
  static Mapping of_file(int fd, Bytes offset, Bytes size);

  Mapping(Mapping&& other) noexcept
      : base_(std::exchange(other.base_, nullptr)), length_(other.length_), start_(other.start_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(base_, other.base_);
    std::swap(length_, other.length_);
    std::swap(start_, other.start_);
    return *this;
  }
  ~Mapping() {
    if (base_ != nullptr) munmap(base_, length_);
  }

  [[nodiscard]] bool is_open() const { return base_ != nullptr; }
  [[nodiscard]] std::byte* data() const { return start_; }
  [[nodiscard]] std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(start_); }

 private:
  Mapping(void* base, std::size_t length, std::byte* start)
      : base_(base), length_(length), start_(start) {}
  void* base_ = nullptr;
  std::size_t length_ = 0;
  std::byte* start_ = nullptr;
};

}  // namespace gdr::memory
