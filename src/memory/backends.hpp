#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "src/memory/device_memory.hpp"

namespace gdr::memory {

/// How a fake device fails, as real ones do. The bar backend takes them as well.
struct DeviceFaults {
  bool dma_buf = true;  ///< false: no descriptor, as with CUDA before 11.7
  bool peer_memory =
      true;  ///< false: registration by address fails with EFAULT, as without nvidia-peermem
  std::optional<Bytes> bar_window;  ///< bytes exported at once in total; nullopt: no limit
  std::optional<Bytes> largest_registration;  ///< exports beyond it are refused
  double stale_reads = 0;   ///< share of device-side reads of 4 KiB that see no inbound RDMA write
                            ///< until a flush: 0 to 1
  unsigned copy_delay = 0;  ///< an event is done after this many queries; 0: at once
  std::uint64_t seed = 1;
};

struct FakeOptions {
  unsigned index = 0;
  Bytes capacity{std::uint64_t{1} << 30U};  ///< the system provides memory when it is first written
  Bytes granularity{std::uint64_t{64} << 10U};
  std::string sysfs_device;  ///< "" for none
  DeviceFaults faults;
};

/// Host memory as a device: the CPU moves the bytes. Pointers are ordinary addresses.
std::unique_ptr<DeviceMemory> make_host_memory();

/// A device in this process. Device pointers are a mapping without access, so that a CPU access
/// traps with a message; NICs register a second mapping of the same memory under the device
/// pointer. Throws InputError for invalid options.
std::unique_ptr<DeviceMemory> make_fake_memory(const FakeOptions& options);

/// GPU `index` of a guest of `gdr emulate`: /dev/gdr-gpuINDEX. Throws InputError where there is
/// none.
std::unique_ptr<DeviceMemory> make_bar_memory(unsigned index, const DeviceFaults& faults = {});

/// GPU `index` through CUDA's driver API, loaded from `library` now. Throws InputError when there
/// is no such library or GPU.
std::unique_ptr<DeviceMemory> make_cuda_memory(unsigned index,
                                               const std::string& library = "libcuda.so.1");

/// "host", "fake", "fake:1", "bar:0", "cuda:2". Throws InputError.
std::unique_ptr<DeviceMemory> make_memory(const std::string& text);

}  // namespace gdr::memory
