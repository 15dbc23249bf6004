#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <bit>
#include <cerrno>
#include <cstring>
#include <map>

#include "src/common/error.hpp"
#include "src/memory/access_trap.hpp"
#include "src/memory/mapped_memory.hpp"
#include "src/memory/mapping.hpp"

namespace gdr::memory {
namespace {

/// One memfd of the device's size, mapped twice: without access where device pointers point, with
/// access for NICs and copies.
class FakeBacking final : public Backing {
 public:
  explicit FakeBacking(const FakeOptions& options)
      : options_(options),
        memory_(memfd_create("gdr-fake-gpu", MFD_CLOEXEC)),
        device_(Mapping::reserve(options.capacity, Bytes{std::uint64_t{2} << 20U})) {
    const bool sized = memory_.is_open() &&
                       ftruncate(memory_.get(), static_cast<off_t>(options.capacity.count)) == 0;
    if (sized) mapped_ = Mapping::of_file(memory_.get(), Bytes{0}, options.capacity);
    if (!mapped_.is_open() || !device_.is_open())
      throw InputError(
          fmt::format("fake memory of {}: {}", to_string(options.capacity), std::strerror(errno)));
    trap_ = std::make_unique<AccessTrap>(FakeBacking::name(), device_.address(), options.capacity);
  }

  [[nodiscard]] std::string name() const override { return fmt::format("fake{}", options_.index); }
  [[nodiscard]] std::string sysfs_device() const override { return options_.sysfs_device; }
  [[nodiscard]] Bytes granularity() const override { return options_.granularity; }
  [[nodiscard]] bool has_copy_engine() const override { return true; }

  /// First fit.
  Result<Placed> place(Bytes size) override {
    std::uint64_t offset = 0;
    for (const auto& [start, length] : taken_) {
      if (start - offset >= size.count) break;
      offset = start + length;
    }
    if (size.count > options_.capacity.count || offset > options_.capacity.count - size.count)
      return Status(Cause::out_of_memory,
                    fmt::format("{}: no {} in one piece are left of {}", name(), to_string(size),
                                to_string(options_.capacity)));
    taken_.emplace(offset, size.count);
    return Placed{device_.address() + offset, mapped_.data() + offset, size, memory_.get(),
                  Bytes{offset}};
  }

  void release(const Placed& placed) override {
    const std::uint64_t offset = placed.fd_offset.count;
    taken_.erase(offset);
    fallocate(memory_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
              static_cast<off_t>(placed.size.count));
  }

 private:
  FakeOptions options_;
  UniqueFd memory_;
  Mapping device_;
  Mapping mapped_;
  std::unique_ptr<AccessTrap> trap_;
  std::map<std::uint64_t, std::uint64_t> taken_;  // offset, length
};

}  // namespace

std::unique_ptr<DeviceMemory> make_fake_memory(const FakeOptions& options) {
  const std::uint64_t granule = options.granularity.count;
  if (!std::has_single_bit(granule) || granule < 4096 || granule > (std::uint64_t{2} << 20U))
    throw InputError(
        fmt::format("fake memory: a granularity of {}; it is a power of two from 4KiB to 2MiB",
                    to_string(options.granularity)));
  if (options.capacity.count == 0 || options.capacity.count % granule != 0)
    throw InputError(fmt::format("fake memory of {}: it is a multiple of the granularity, {}",
                                 to_string(options.capacity), to_string(options.granularity)));
  return std::make_unique<MappedMemory>(std::make_unique<FakeBacking>(options), options.faults);
}

}  // namespace gdr::memory
