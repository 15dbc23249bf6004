#include "emu/machine/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "emu/machine/addresses.hpp"

namespace gdr::emu {
namespace {

using namespace literals;

constexpr Bytes max_each = 256_MiB;
constexpr Bytes max_host = 1_GiB;
constexpr Bytes page = 4_KiB;

}  // namespace

std::vector<GpuMemory> gpu_memory(const Hardware& hardware, std::size_t host_index) {
  const Host& host = hardware.topology().hosts.at(host_index);
  std::vector<GpuMemory> gpus;
  const auto numbered = numbered_devices(host, DeviceKind::gpu);
  if (numbered.empty()) return gpus;
  const std::uint64_t most =
      std::min(max_each.count, std::bit_floor(max_host.count / numbered.size()));
  for (const Numbered& gpu : numbered) {
    const Bytes full = hardware.bar_size({host_index, gpu.device});
    const std::uint64_t size = std::clamp(std::bit_floor(full.count), page.count, most);
    gpus.push_back({gpu.number, gpu.device, full, {size}});
  }
  return gpus;
}

std::string cut_note(const Host& host, const std::vector<GpuMemory>& gpus) {
  // GPUs with equal sizes share a phrase.
  std::vector<std::pair<std::string, int>> cuts;
  for (const GpuMemory& gpu : gpus) {
    if (gpu.size == gpu.full) continue;
    std::string cut = fmt::format("{} instead of {}", to_string(gpu.size), to_string(gpu.full));
    if (!cuts.empty() && cuts.back().first == cut) ++cuts.back().second;
    else cuts.emplace_back(std::move(cut), 1);
  }
  std::string note;
  for (const auto& [cut, count] : cuts)
    note +=
        fmt::format("{}{} ({} GPU{})", note.empty() ? "" : ", ", cut, count, count == 1 ? "" : "s");
  return note.empty() ? note : fmt::format("{}: GPU memory is cut to fit: {}", host.name, note);
}

}  // namespace gdr::emu
