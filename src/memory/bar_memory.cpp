#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/memory/access_trap.hpp"
#include "src/memory/mapped_memory.hpp"
#include "src/memory/mapping.hpp"
#include "src/memory/uapi/gdr_gpu.h"

namespace gdr::memory {
namespace {

/// The BAR of a fake GPU. Device pointers are address space without access, as with
/// make_fake_memory.
class BarBacking final : public Backing {
 public:
  explicit BarBacking(unsigned index)
      : index_(index),
        path_(fmt::format("/dev/gdr-gpu{}", index)),
        device_fd_(open(path_.c_str(), O_RDWR | O_CLOEXEC)) {
    if (!device_fd_.is_open())
      throw InputError(fmt::format("bar memory {}: {}: {}; it exists in guests of gdr emulate",
                                   index, path_, std::strerror(errno)));
    gdr_gpu_query query = {};
    if (ioctl(device_fd_.get(), GDR_GPU_QUERY, &query) != 0)
      throw InputError(fmt::format("{}: not a fake GPU: {}", path_, std::strerror(errno)));
    device_ = Mapping::reserve(Bytes{query.bar_size}, Bytes{std::uint64_t{2} << 20U});
    if (!device_.is_open())
      throw InputError(
          fmt::format("{}: no address space of {}", path_, to_string(Bytes{query.bar_size})));
    trap_ =
        std::make_unique<AccessTrap>(BarBacking::name(), device_.address(), Bytes{query.bar_size});
  }

  [[nodiscard]] std::string name() const override { return fmt::format("bar{}", index_); }
  [[nodiscard]] std::string sysfs_device() const override {
    std::error_code error;
    const auto place =
        std::filesystem::canonical(fmt::format("/sys/class/misc/gdr-gpu{}/device", index_), error);
    return error ? "" : place.string();
  }
  [[nodiscard]] Bytes granularity() const override { return Bytes{4096}; }
  [[nodiscard]] bool has_copy_engine() const override { return true; }

  Result<Placed> place(Bytes size) override {
    gdr_gpu_range range = {};
    range.size = size.count;
    if (ioctl(device_fd_.get(), GDR_GPU_ALLOCATE, &range) != 0)
      return Status(Cause::out_of_memory, fmt::format("{}: no {} of the BAR: {}", name(),
                                                      to_string(size), std::strerror(errno)));
    Mapping mapped = Mapping::of_file(device_fd_.get(), Bytes{range.offset}, size);
    if (!mapped.is_open()) {
      const int error = errno;
      ioctl(device_fd_.get(), GDR_GPU_FREE, &range);
      return Status(Cause::device_failed,
                    fmt::format("{}: {} at {:#x} of the BAR cannot be mapped: {}", name(),
                                to_string(size), range.offset, std::strerror(error)));
    }
    std::byte* cpu = mapped.data();
    mappings_.emplace(range.offset, std::move(mapped));
    return Placed{device_.address() + range.offset, cpu, size, -1, Bytes{range.offset}};
  }

  void release(const Placed& placed) override {
    gdr_gpu_range range = {};
    range.offset = placed.fd_offset.count;
    mappings_.erase(range.offset);
    ioctl(device_fd_.get(), GDR_GPU_FREE, &range);
  }

  /// Copies are done by the driver, which counts them, so that this process's own counts can be
  /// compared.
  void copy_out(std::byte* to, const Placed& from, Bytes offset, Bytes size) override {
    for (std::uint64_t done = 0; done < size.count;) {
      const auto at = static_cast<off_t>(from.fd_offset.count + offset.count + done);
      const ssize_t count = pread(device_fd_.get(), to + done, size.count - done, at);
      check(count > 0, "a fake GPU does not copy out");
      done += static_cast<std::uint64_t>(count);
    }
  }
  void copy_in(const Placed& to, Bytes offset, const std::byte* from, Bytes size) override {
    for (std::uint64_t done = 0; done < size.count;) {
      const auto at = static_cast<off_t>(to.fd_offset.count + offset.count + done);
      const ssize_t count = pwrite(device_fd_.get(), from + done, size.count - done, at);
      check(count > 0, "a fake GPU does not copy in");
      done += static_cast<std::uint64_t>(count);
    }
  }

 private:
  unsigned index_;
  std::string path_;
  UniqueFd device_fd_;
  Mapping device_;
  std::unique_ptr<AccessTrap> trap_;
  std::map<std::uint64_t, Mapping> mappings_;
};

}  // namespace

std::unique_ptr<DeviceMemory> make_bar_memory(unsigned index, const DeviceFaults& faults) {
  return std::make_unique<MappedMemory>(std::make_unique<BarBacking>(index), faults);
}

}  // namespace gdr::memory
