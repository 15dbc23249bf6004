#include <fmt/format.h>
#include <sys/mman.h>

#include "src/memory/mapped_memory.hpp"

namespace gdr::memory {
namespace {

class HostBacking final : public Backing {
 public:
  [[nodiscard]] std::string name() const override { return "host"; }
  [[nodiscard]] std::string sysfs_device() const override { return ""; }
  [[nodiscard]] Bytes granularity() const override { return Bytes{4096}; }
  [[nodiscard]] bool has_copy_engine() const override { return false; }

  Result<Placed> place(Bytes size) override {
    void* base =
        mmap(nullptr, size.count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED)
      return Status(Cause::out_of_memory,
                    fmt::format("host: the system has no {}", to_string(size)));
    return Placed{
        reinterpret_cast<std::uint64_t>(base), static_cast<std::byte*>(base), size, -1, {}};
  }
  void release(const Placed& placed) override { munmap(placed.cpu, placed.size.count); }
};

}  // namespace

std::unique_ptr<DeviceMemory> make_host_memory() {
  return std::make_unique<MappedMemory>(std::make_unique<HostBacking>(), DeviceFaults{});
}

}  // namespace gdr::memory
