#include "src/transport/connection/shared_ranges.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace gdr::transport {

std::vector<std::uint32_t> remote_keys(const RegisteredRange& range, const LaneSet& lanes) {
  std::vector<std::uint32_t> keys;
  for (std::size_t i = 0; i < lanes.queue_pairs(); ++i)
    keys.push_back(range.keys[lanes.queue_pair(i).nic()].remote);
  return keys;
}

Result<Keys> take_keys(std::span<const std::byte> payload) {
  auto keys = parse_keys(payload);
  if (!keys.ok()) return keys.status();
  return Keys(std::make_shared<const std::vector<std::uint32_t>>(std::move(keys.value())));
}

Status SharedRanges::share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size,
                           TransportPath path) {
  const auto info = find_allocation(*engine_.memory, pointer, size);
  if (!info.ok()) return info.status();
  if (own_.contains(tag))
    return {Cause::invalid, fmt::format("a range with tag {} is shared already", tag)};
  Own own{pointer, size, info.value().allocation, nullptr};
  std::vector<std::uint32_t> keys;
  if (path == TransportPath::gdr) {
    const auto registered = engine_.registrations->get(pointer, size);
    if (registered.ok()) {
      own.registered = registered.value();
      keys = remote_keys(*own.registered, lanes_);
    } else {
      if (engine_.options.path) return registered.status();
      engine_.log(fmt::format(
          "GPU Direct RDMA Disabled for GPU {} / HCA {}: the shared range of {} is staged: {}",
          engine_.facts.memory, engine_.facts.nics, to_string(size), registered.status().text()));
    }
  }
  Frame frame;
  frame.type = FrameType::share;
  frame.value = tag;
  frame.address = pointer.address;
  frame.total = size.count;
  control_.add(frame, put_keys(keys), LaneSet::stream_index);
  own_.emplace(tag, std::move(own));
  return {};
}

Status SharedRanges::unshare(std::uint64_t tag) {
  if (own_.erase(tag) == 0)
    return {Cause::invalid, fmt::format("no range with tag {} is shared", tag)};
  Frame frame;
  frame.type = FrameType::unshare;
  frame.value = tag;
  control_.add(frame, {}, LaneSet::stream_index);
  return {};
}

void SharedRanges::unshare_allocation(std::uint64_t allocation) {
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, own] : own_)
    if (own.allocation == allocation) tags.push_back(tag);
  for (const std::uint64_t tag : tags) (void)unshare(tag);
}

bool SharedRanges::cover(std::uint64_t address, std::uint64_t size) const {
  return std::any_of(own_.begin(), own_.end(), [&](const auto& entry) {
    const std::uint64_t base = entry.second.pointer.address;
    const std::uint64_t have = entry.second.size.count;
    return address >= base && address - base <= have && size <= have - (address - base);
  });
}

Status SharedRanges::flush() const {
  for (const auto& [tag, own] : own_)
    if (Status flushed = engine_.flush(own.pointer, own.size); !flushed.ok()) return flushed;
  return {};
}

const SharedRanges::PeerRange* SharedRanges::of_peer(std::uint64_t tag) const {
  const auto found = of_peer_.find(tag);
  return found == of_peer_.end() ? nullptr : &found->second;
}

Status SharedRanges::take_share(const Frame& frame, std::span<const std::byte> payload) {
  auto keys = take_keys(payload);
  if (!keys.ok()) return keys.status();
  if (of_peer_.size() >= 65536) return protocol_error("more than 65536 shared ranges");
  of_peer_[frame.value] = {{frame.value, frame.address, Bytes{frame.total}},
                           std::move(keys.value())};
  return {};
}

}  // namespace gdr::transport
