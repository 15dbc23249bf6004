#pragma once

#include <string>
#include <vector>

#include "src/common/units.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr::emu {

/// The memory of an emulated GPU: a file outside, a PCI BAR inside.
struct GpuMemory {
  std::size_t number = 0;  ///< /dev/gdr-gpuN
  std::size_t device = 0;  ///< index in host.devices
  Bytes full;              ///< the topology's size, or else the GPU model's
  Bytes size;              ///< size of the emulated memory: a power of two
};

/// A BAR costs the guest a 64th of its size for page structures and the time to fill them in, so
/// BARs are cut: to 256 MiB each, 1 GiB per host.
std::vector<GpuMemory> gpu_memory(const Hardware& hardware, std::size_t host);

/// One line that says what was cut; empty when nothing was.
std::string cut_note(const Host& host, const std::vector<GpuMemory>& gpus);

}  // namespace gdr::emu
