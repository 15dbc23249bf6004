#include "src/memory/mapping.hpp"

namespace gdr::memory {

Mapping Mapping::reserve(Bytes size, Bytes alignment) {
  const std::size_t length = size.count + alignment.count;
  void* base = mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) return {};
  const std::uint64_t skip =
      (alignment.count - reinterpret_cast<std::uint64_t>(base) % alignment.count) % alignment.count;
  return {base, length, static_cast<std::byte*>(base) + skip};
}

Mapping Mapping::of_file(int fd, Bytes offset, Bytes size) {
  void* base = mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
                    static_cast<off_t>(offset.count));
  if (base == MAP_FAILED) return {};
  return {base, size.count, static_cast<std::byte*>(base)};
}

}  // namespace gdr::memory
