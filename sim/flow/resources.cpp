#include "sim/flow/resources.hpp"

namespace gdr::sim {

std::size_t Resources::number(const ResourceId& id, Bandwidth capacity, bool payload) {
  const auto [at, added] = numbers_.emplace(id, resources_.size());
  if (added)
    resources_.push_back({.id = id, .capacity = capacity.bytes_per_second, .payload = payload});
  return at->second;
}

void Resources::use(std::size_t resource, double units_per_byte, double bytes) {
  resources_[resource].units += units_per_byte * bytes;
  resources_[resource].bytes += bytes;
}

void Resources::limit_fan_out(std::vector<FlowSpec>& flows) {
  for (const auto& [port, writes] : peer_writes_) {
    std::set<VertexId> engines;
    std::set<std::size_t> ports;
    for (const PeerWrite& write : writes) {
      engines.insert(write.engine);
      ports.insert(write.to);
    }
    if (engines.size() < 2 || ports.size() < 2) continue;
    const std::size_t shared = number(port, writes.back().bandwidth, true);
    for (const PeerWrite& write : writes) {
      flows[write.flow].stages[write.stage].resources.push_back(shared);
      use(shared, write.units_per_byte, write.bytes);
    }
  }
}

std::vector<Resource> Resources::take() const {
  std::vector<Resource> list;
  for (const Shared& shared : resources_) {
    // Where capacity counts payload and stages count wire bytes, the capacity grows by their mean
    // share of headers. This is exact when all flows have the same share, as between equal devices.
    const double units = shared.payload && shared.bytes > 0 ? shared.units / shared.bytes : 1;
    list.push_back({shared.id, shared.capacity * units, Bandwidth{shared.capacity}});
  }
  return list;
}

}  // namespace gdr::sim
