#include "src/topology/topology.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace gdr {

std::string_view to_string(DeviceKind kind) {
  static constexpr std::array<std::string_view, 7> names{"host-bridge", "switch",   "gpu",  "nic",
                                                         "nvme",        "nvswitch", "other"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string_view to_string(LinkLayer layer) {
  return layer == LinkLayer::infiniband ? "infiniband" : "ethernet";
}

std::string_view to_string(IommuMode mode) {
  static constexpr std::array<std::string_view, 3> names{"off", "passthrough", "translate"};
  return names.at(static_cast<std::size_t>(mode));
}

std::string_view to_string(Severity severity) {
  static constexpr std::array<std::string_view, 3> names{"error", "warning", "note"};
  return names.at(static_cast<std::size_t>(severity));
}

std::string_view to_string(Distance distance) {
  static constexpr std::array<std::string_view, 10> names{
      "X", "PIX", "PXB", "PHB", "PHB/NODE", "NODE", "NODE/SYS", "SYS", "unknown", "none"};
  return names.at(static_cast<std::size_t>(distance));
}

std::string label(const Topology& topology, DeviceId id) {
  return topology.hosts.at(id.host).name + "/" + get(topology, id).name;
}

namespace {

template <typename Items>
std::optional<std::size_t> index_of(const Items& items, std::string_view name) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].name == name) return i;
  return std::nullopt;
}

template <typename Items>
std::string names_of(const Items& items) {
  std::vector<std::string_view> names;
  for (const auto& item : items) names.push_back(item.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::optional<std::size_t> device_index(const Host& host, std::string_view name) {
  return index_of(host.devices, name);
}
std::optional<std::size_t> numa_index(const Host& host, std::string_view name) {
  return index_of(host.numa_nodes, name);
}
std::optional<std::size_t> socket_index(const Host& host, std::string_view name) {
  return index_of(host.sockets, name);
}

DeviceId find_device(const Topology& topology, std::string_view text) {
  const auto slash = text.find('/');
  DeviceId id;
  std::string_view device = text;
  if (slash != std::string_view::npos) {
    const auto host = index_of(topology.hosts, text.substr(0, slash));
    if (!host)
      throw InputError(fmt::format("{}: {} has no host \"{}\"; it has: {}", text, topology.name,
                                   text.substr(0, slash), names_of(topology.hosts)));
    id.host = *host;
    device = text.substr(slash + 1);
  } else if (topology.hosts.size() != 1) {
    throw InputError(
        fmt::format("{}: {} has several hosts; write HOST/DEVICE with one of the hosts {}", text,
                    topology.name, names_of(topology.hosts)));
  }
  const Host& host = topology.hosts.at(id.host);
  const auto index = device_index(host, device);
  if (!index)
    throw InputError(fmt::format("{}: host {} has no device \"{}\"; it has: {}", text, host.name,
                                 device, names_of(host.devices)));
  id.device = *index;
  return id;
}

std::vector<DeviceId> devices_of_kind(const Topology& topology, DeviceKind kind) {
  std::vector<DeviceId> ids;
  for (std::size_t host = 0; host < topology.hosts.size(); ++host)
    for (std::size_t device = 0; device < topology.hosts[host].devices.size(); ++device)
      if (topology.hosts[host].devices[device].kind == kind) ids.push_back({host, device});
  return ids;
}

}  // namespace gdr
