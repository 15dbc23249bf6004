#include "src/transport/verbs/double_fabric.hpp"

#include <algorithm>

#include "src/common/splitmix.hpp"
#include "src/transport/verbs/double_pair.hpp"

namespace gdr::transport {

DoubleFabric::DoubleFabric(const DoubleOptions& chosen) : options(chosen) {}

bool DoubleFabric::chance(std::uint64_t number, std::uint64_t purpose, double share) const {
  return happens(splitmix64(splitmix64(options.faults.seed ^ number) ^ purpose), share);
}

void DoubleFabric::at(Duration when, Action action) {
  due_.push({when, ++order_, std::move(action)});
}

bool DoubleFabric::port_up(const std::string& device) const {
  return std::none_of(options.faults.outages.begin(), options.faults.outages.end(),
                      [&](const DoubleFaults::Outage& outage) {
                        return outage.device == device && time_ >= outage.at &&
                               time_ < outage.at + outage.length;
                      });
}

bool DoubleFabric::reachable(const std::string& device) const {
  const auto& deaths = options.faults.deaths;
  const bool dead =
      std::any_of(deaths.begin(), deaths.end(), [&](const DoubleFaults::Death& death) {
        return death.device == device && time_ >= death.at;
      });
  return !dead && has_address(device) && port_up(device);
}

bool DoubleFabric::has_address(const std::string& device) const {
  const auto& lost = options.faults.lost_addresses;
  return std::none_of(lost.begin(), lost.end(), [&](const DoubleFaults::Death& loss) {
    return loss.device == device && time_ >= loss.at;
  });
}

void DoubleFabric::send(DoubleDevice& from, const Gid& to, DoublePacket packet, bool again) {
  const std::uint64_t number = ++packet_count.sent;
  if (again) ++packet_count.again;
  const DoubleFaults& faults = options.faults;
  if (!reachable(from.name()) || chance(number, 1, faults.loss) ||
      chance(number, 2, faults.corrupt))
    return;
  Duration arrival = time_ + options.latency;
  if (chance(number, 3, faults.reorder)) arrival += faults.reorder_by;
  if (!packet.payload.empty() && chance(number, 4, faults.silent_corrupt))
    packet.payload[packet.payload.size() / 2] ^= std::byte{0x10};
  at(arrival, [this, to, packet = std::move(packet)]() mutable {
    const auto device = by_gid.find(to);
    if (device == by_gid.end() || !reachable(device->second->name())) return;
    const auto pair = pairs.find(packet.to);
    if (pair != pairs.end()) pair->second->arrived(std::move(packet));
  });
}

std::byte* DoubleFabric::translate(const DoubleDevice& device, std::uint32_t key,
                                   std::uint64_t address, Bytes size, bool write) {
  const auto found = regions.find(key);
  if (found == regions.end() || found->second.owner != &device) return nullptr;
  const DoubleRegion& region = found->second;
  if (address < region.iova || address - region.iova > region.size.count ||
      size.count > region.size.count - (address - region.iova))
    return nullptr;
  DmaBytes& bytes = dma[device.name()];
  Bytes& counter = region.device ? (write ? bytes.device_written : bytes.device_read)
                                 : (write ? bytes.host_written : bytes.host_read);
  counter.count += size.count;
  return region.mapped + (address - region.iova);
}

void DoubleFabric::advance() {
  const Duration end = time_ + options.idle_step;
  if (due_.empty() || due_.top().when > end) {
    time_ = end;
    return;
  }
  // Advance one moment at a time, so that waiting code can act on it.
  time_ = std::max(time_, due_.top().when);
  while (!due_.empty() && due_.top().when <= time_) {
    const Action action = due_.top().action;
    due_.pop();
    action();
  }
}

std::shared_ptr<DoubleFabric> make_double_fabric(const DoubleOptions& options) {
  return std::make_shared<DoubleFabric>(options);
}

DmaBytes dma_bytes(const DoubleFabric& fabric, const std::string& device) {
  const std::lock_guard lock(fabric.mutex);
  const auto found = fabric.dma.find(device);
  return found == fabric.dma.end() ? DmaBytes{} : found->second;
}

std::size_t live_objects(const DoubleFabric& fabric) {
  const std::lock_guard lock(fabric.mutex);
  return fabric.live;
}

Duration now(const DoubleFabric& fabric) {
  const std::lock_guard lock(fabric.mutex);
  return fabric.time();
}

PacketCount packets(const DoubleFabric& fabric) {
  const std::lock_guard lock(fabric.mutex);
  return fabric.packet_count;
}

}  // namespace gdr::transport
