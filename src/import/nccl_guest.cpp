#include "src/import/nccl_guest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"
#include "src/import/observed.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/write.hpp"

namespace gdr {
namespace {

using Places = std::map<std::string, GuestMap::Place>;

void add(Places& places, const std::string& key, GuestMap::Place place, const GuestMap& map) {
  const auto [at, added] = places.emplace(key, place);
  if (!added)
    throw InputError(
        fmt::format("{}:{}: {} is also in line {}", map.name, place.line, key, at->second.line));
}

/// Finds the map's line for a device of the host.
const GuestMap::Place* place_of(const GuestMap& map, const Device& device) {
  for (const std::string& key : {device.name, device.address})
    if (const auto found = map.devices.find(key); !key.empty() && found != map.devices.end())
      return &found->second;
  return nullptr;
}

bool can_be_passed(const Device& device) {
  return device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic;
}

void check_lines(const Host& host, const GuestMap& map) {
  for (const auto& [key, place] : map.devices) {
    const auto named = [&key = key](const Device& device) {
      return device.name == key || device.address == key;
    };
    const auto device = std::find_if(host.devices.begin(), host.devices.end(), named);
    if (device == host.devices.end())
      throw InputError(
          fmt::format("{}:{}: host {} has no device {}; gdr show lists names and addresses",
                      map.name, place.line, host.name, key));
    if (!can_be_passed(*device))
      throw InputError(fmt::format("{}:{}: {} is a {}; NCCL looks at GPUs and NICs only", map.name,
                                   place.line, key, to_string(device->kind)));
    if (&place != place_of(map, *device))
      throw InputError(fmt::format("{}:{}: {} is also named by another line ({} {})", map.name,
                                   place.line, key, device->name, device->address));
  }
  for (const auto& [name, place] : map.numa)
    if (!numa_index(host, name))
      throw InputError(
          fmt::format("{}:{}: host {} has no NUMA node {}", map.name, place.line, host.name, name));
}

/// The names to keep: the devices of the map and everything above them.
std::set<std::string> kept_names(const Host& host, const GuestMap& map) {
  std::set<std::string> kept;
  for (const Device& device : host.devices) {
    if (place_of(map, device) == nullptr) continue;
    kept.insert(device.name);
    std::string above = device.under;
    while (const auto index = device_index(host, above)) {
      kept.insert(above);
      above = host.devices[*index].under;
    }
    kept.insert(above);
  }
  return kept;
}

void number_nodes(const Host& host, const GuestMap& map,
                  std::vector<std::vector<NcclElement>>& elements) {
  std::map<std::string, std::string> taken;
  for (std::size_t i = 0; i < host.numa_nodes.size(); ++i) {
    NcclElement& cpu = elements[i].front();
    elements[i].resize(1);
    // The guest has different cores and is a different host.
    std::erase_if(cpu.attributes, [](const auto& attribute) {
      return attribute.first == "affinity" || attribute.first == "host_hash";
    });
    const auto mapped = map.numa.find(host.numa_nodes[i].name);
    if (mapped != map.numa.end()) nccl::set_attribute(cpu, "numaid", mapped->second.guest);
    const std::string number =
        nccl::attribute(cpu, "numaid") == nullptr ? "" : *nccl::attribute(cpu, "numaid");
    if (const auto [other, fresh] = taken.emplace(number, host.numa_nodes[i].name); !fresh)
      throw InputError(
          fmt::format("{}: NUMA nodes {} and {} would both be {} in the guest; give each its own "
                      "(numa NAME NUMBER)",
                      map.name, other->second, host.numa_nodes[i].name, number));
  }
}

}  // namespace

GuestMap parse_guest_map(std::string_view text, const std::string& name) {
  GuestMap map;
  map.name = name;
  std::map<std::string, std::size_t> guests;
  std::size_t number = 0;
  for (const std::string_view whole : text::lines(text)) {
    ++number;
    const auto words = text::split_words(whole.substr(0, whole.find('#')));
    if (words.empty()) continue;
    if (words.size() == 3 && words[0] == "numa") {
      const auto node = text::whole_int(words[2]);
      if (!node || *node < 0)
        throw InputError(
            fmt::format("{}:{}: \"{}\" is not the number of a NUMA node", name, number, words[2]));
      add(map.numa, std::string(words[1]), {std::to_string(*node), number}, map);
      continue;
    }
    if (words.size() != 2)
      throw InputError(fmt::format(
          "{}:{}: expected \"HOST-ADDRESS GUEST-ADDRESS\" or \"numa NAME NUMBER\"", name, number));
    const std::string guest = observed::full_address(words[1]);
    if (guest.empty() || guest.back() > '7')
      throw InputError(fmt::format("{}:{}: \"{}\" is not a PCI address such as 0001:00:00.0", name,
                                   number, words[1]));
    const std::string host = observed::full_address(words[0]);
    add(map.devices, host.empty() ? std::string(words[0]) : host, {guest, number}, map);
    if (const auto [other, fresh] = guests.emplace(guest, number); !fresh)
      throw InputError(
          fmt::format("{}:{}: {} is also in line {}", name, number, guest, other->second));
  }
  if (map.devices.empty())
    throw InputError(
        fmt::format("{}: it names no device; each line is HOST-ADDRESS GUEST-ADDRESS", name));
  return map;
}

std::string export_guest_xml(const Topology& topology, std::size_t host_index, const GuestMap& map,
                             const ModelLibrary* models) {
  const Host& host = topology.hosts.at(host_index);
  check_lines(host, map);
  const std::set<std::string> kept = kept_names(host, map);
  Topology guest;
  guest.hosts.push_back(host);
  Host& own = guest.hosts.front();
  own.nvlinks.clear();
  std::erase_if(own.devices, [&](const Device& device) { return !kept.contains(device.name); });
  std::erase_if(own.numa_nodes, [&](const NumaNode& node) { return !kept.contains(node.name); });
  std::set<std::string> taken;
  for (const auto& [key, place] : map.devices) taken.insert(place.guest);
  int invented = 0;
  const auto invent = [&] {
    std::string address;
    do address = fmt::format("ffff:ff:{:02x}.{}", invented / 8, invented % 8);
    while (++invented <= 256 && taken.contains(address));
    if (invented > 256)
      throw InputError(fmt::format("{}: more than 256 switches above the devices", map.name));
    return address;
  };
  for (Device& device : own.devices) {
    const GuestMap::Place* place = place_of(map, device);
    if (place != nullptr) device.address = place->guest;
    else if (device.kind != DeviceKind::host_bridge) device.address = invent();
  }
  nccl::HostElements elements = nccl::host_elements(guest, 0, models, false);
  for (auto& list : elements.devices)
    if (list.size() > 1) list.resize(1);
  number_nodes(own, map, elements.numa_nodes);
  return nccl::write_xml(own, std::move(elements));
}

}  // namespace gdr
