#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

#include "src/catalog/parameter_rules.hpp"
#include "src/common/error.hpp"
#include "src/common/json_reader.hpp"
#include "src/topology/load_distances.hpp"
#include "src/topology/settings.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr {
namespace {

using json::Node;
using json::ObjectReader;

PcieLink read_link(const Node& node) {
  const std::string text = node.string();
  try {
    return parse_pcie_link(text);
  } catch (const InputError& error) {
    node.fail(error.what());
  }
}

Bytes read_power_of_two(const Node& node, std::uint64_t low, std::uint64_t high) {
  const Bytes size = node.bytes();
  const bool power = size.count != 0 && (size.count & (size.count - 1)) == 0;
  if (!power || size.count < low || size.count > high)
    node.fail(to_string(size), fmt::format("a power of two from {} to {}", to_string(Bytes{low}),
                                           to_string(Bytes{high})));
  return size;
}

std::string read_hex_pair(const Node& node) {
  const std::string text = node.string();
  if (!is_pci_id(text))
    node.fail(fmt::format("\"{}\"", printable(text, 40)),
              "vendor:device in lower-case hexadecimal, as in \"10de:20b0\"");
  return text;
}

/// domain:bus:device.function; the domain has 4 to 8 digits.
std::string read_address(const Node& node) {
  const std::string text = node.string();
  const auto hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  const std::size_t domain = text.find(':');
  bool good =
      domain != std::string::npos && domain >= 4 && domain <= 8 && text.size() == domain + 8;
  for (std::size_t i = 0; good && i < text.size(); ++i) {
    if (i == domain || i == domain + 3) good = text[i] == ':';
    else if (i == domain + 6) good = text[i] == '.';
    else good = hex(text[i]);
  }
  if (!good)
    node.fail(fmt::format("\"{}\"", printable(text, 40)),
              "domain:bus:device.function in lower-case hexadecimal, as in \"0000:3b:00.0\"");
  return text;
}

std::vector<NcclElement> read_nccl(const Node& node) {
  std::vector<NcclElement> elements;
  for (const Node& item : node.array()) {
    ObjectReader object(item);
    NcclElement& element = elements.emplace_back();
    element.tag = object.required("tag").string();
    ObjectReader attributes(object.required("attributes"));
    for (const auto& [name, value] : attributes.all())
      element.attributes.emplace_back(name, value.string());
    object.finish();
  }
  return elements;
}

void read_nic(ObjectReader& object, Device& device) {
  if (const auto n = object.optional("ports")) device.ports = static_cast<int>(n->integer(1, 16));
  if (const auto n = object.optional("port_rate")) {
    device.port_rate = n->bandwidth();
    if (device.port_rate->bytes_per_second == 0) n->fail("0", "more than 0");
  }
  if (const auto n = object.optional("link_layer")) {
    static constexpr std::array<std::string_view, 2> layers{"infiniband", "ethernet"};
    device.link_layer = static_cast<LinkLayer>(n->choice(layers));
  }
  if (const auto n = object.optional("rdma_device")) device.rdma_device = n->name();
  if (const auto n = object.optional("gid_type"))
    device.gid_type = static_cast<int>(n->integer(1, 2));
  if (const auto n = object.optional("lossless")) device.lossless = n->boolean();
}

Device read_device(const Node& node) {
  static constexpr std::array<std::string_view, 7> kinds{"host-bridge", "switch",   "gpu",  "nic",
                                                         "nvme",        "nvswitch", "other"};
  ObjectReader object(node);
  Device device;
  device.name = object.required("name").name();
  device.kind = static_cast<DeviceKind>(object.required("kind").choice(kinds));
  device.under = object.required("under").name();
  const bool pcie = device.kind != DeviceKind::host_bridge;
  const bool modelled =
      pcie && device.kind != DeviceKind::nvswitch && device.kind != DeviceKind::other;
  if (modelled)
    if (const auto n = object.optional("model")) device.model = n->name();
  if (pcie) {
    if (const auto n = object.optional("place_known")) device.place_known = n->boolean();
    if (const auto n = object.optional("link")) device.link = read_link(*n);
    if (const auto n = object.optional("link_capability")) device.link_capability = read_link(*n);
    if (const auto n = object.optional("acs")) device.acs = read_acs(*n);
    if (const auto n = object.optional("max_payload"))
      device.max_payload = read_power_of_two(*n, 128, 4096);
    if (const auto n = object.optional("max_read_request"))
      device.max_read_request = read_power_of_two(*n, 128, 4096);
    if (const auto n = object.optional("relaxed_ordering")) device.relaxed_ordering = n->boolean();
    if (const auto n = object.optional("ats")) device.ats = n->boolean();
  }
  if (const auto n = object.optional("address")) device.address = read_address(*n);
  if (const auto n = object.optional("pci_id")) device.pci_id = read_hex_pair(*n);
  if (device.kind == DeviceKind::gpu)
    if (const auto n = object.optional("bar_size"))
      device.bar_size = read_power_of_two(*n, 1U << 20U, std::uint64_t{1} << 42U);
  if (device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic)
    if (const auto n = object.optional("gdr")) device.gdr = n->boolean();
  if (device.kind == DeviceKind::nic) read_nic(object, device);
  if (const auto n = object.optional("nccl")) device.nccl = read_nccl(*n);
  object.finish();
  if (device.link && device.link_capability &&
      common_link(*device.link, *device.link_capability) != *device.link)
    node.fail(fmt::format("\"link\" {} exceeds \"link_capability\" {}", to_string(*device.link),
                          to_string(*device.link_capability)));
  return device;
}

Software read_software(const Node& node) {
  ObjectReader object(node);
  Software software;
  const auto version = [&](std::string_view name) -> std::string {
    const auto n = object.optional(name);
    if (!n) return {};
    const std::string text = n->string();
    if (text.empty() || text[0] < '0' || text[0] > '9')
      n->fail(fmt::format("\"{}\"", printable(text, 40)), "a version such as \"5.15\"");
    return text;
  };
  software.kernel = version("kernel");
  if (const auto n = object.optional("iommu")) {
    static constexpr std::array<std::string_view, 3> modes{"off", "passthrough", "translate"};
    software.iommu = static_cast<IommuMode>(n->choice(modes));
  }
  if (const auto n = object.optional("iommu_page_size")) {
    software.iommu_page_size = n->bytes();
    if (*software.iommu_page_size != Bytes{4096} && *software.iommu_page_size != Bytes{2U << 20U} &&
        *software.iommu_page_size != Bytes{1U << 30U})
      n->fail(json::describe(n->value()), "\"4KiB\", \"2MiB\" or \"1GiB\"");
  }
  if (const auto n = object.optional("nvidia_peermem")) software.nvidia_peermem = n->boolean();
  if (const auto n = object.optional("open_kernel_modules"))
    software.open_kernel_modules = n->boolean();
  software.cuda = version("cuda");
  software.nccl_version = version("nccl_version");
  if (const auto n = object.optional("nccl_net_gdr_level"))
    software.nccl_net_gdr_level = n->string();
  object.finish();
  return software;
}

NvLink read_nvlink(const Node& node) {
  ObjectReader object(node);
  NvLink link;
  link.from = object.required("from").name();
  if (const auto n = object.optional("to")) link.to = n->name();
  link.count = static_cast<int>(object.required("count").integer(1, 64));
  if (const auto n = object.optional("model")) link.model = n->name();
  if (const auto n = object.optional("nccl")) link.nccl = read_nccl(*n);
  object.finish();
  return link;
}

/// Names must be unique among a host's sockets, NUMA nodes and devices, since `under` may name any
/// of them.
class Names {
 public:
  void add(const std::string& name, const Node& node) {
    if (!names_.insert(name).second)
      node.fail(fmt::format("the name \"{}\" appears twice in this host; it must be unique", name));
  }

 private:
  std::set<std::string> names_;
};

void check_tree(const Host& host, const std::vector<Node>& nodes) {
  std::vector<std::string_view> parents;
  for (const NumaNode& numa : host.numa_nodes) parents.push_back(numa.name);
  for (const Device& device : host.devices)
    if (device.kind == DeviceKind::host_bridge || device.kind == DeviceKind::pci_switch)
      parents.push_back(device.name);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const Device& device = host.devices[i];
    const Node under = *ObjectReader(nodes[i]).optional("under");
    if (std::find(parents.begin(), parents.end(), device.under) == parents.end())
      under.fail(fmt::format("\"{}\"", device.under),
                 fmt::format("a NUMA node, host bridge or switch of this host: {}",
                             fmt::join(parents, ", ")));
    if (device.kind == DeviceKind::host_bridge && !numa_index(host, device.under))
      under.fail(fmt::format("\"{}\"", device.under),
                 "a NUMA node, which every host bridge belongs to");
    std::size_t steps = 0;
    for (std::string_view at = device.under; !numa_index(host, at);) {
      const auto parent = device_index(host, at);
      if (!parent) break;  // reported at that device
      if (++steps > host.devices.size())
        under.fail(fmt::format("\"{}\" closes a cycle: {} is never below a NUMA node", device.under,
                               device.name));
      at = host.devices[*parent].under;
    }
  }
}

void check_nvlinks(const Host& host, const std::vector<Node>& nodes) {
  std::set<std::pair<std::string, std::string>> pairs;
  for (std::size_t i = 0; i < host.nvlinks.size(); ++i) {
    const NvLink& link = host.nvlinks[i];
    if (link.from == link.to)
      nodes[i].fail(fmt::format("an NVLink from \"{}\" to itself", link.from));
    if (!link.to.empty() && !pairs.insert(std::minmax(link.from, link.to)).second)
      nodes[i].fail(
          fmt::format("the pair {}, {} is listed twice; list it once, with \"count\" links",
                      link.from, link.to));
    const auto from = device_index(host, link.from);
    if (!from || host.devices[*from].kind != DeviceKind::gpu)
      ObjectReader(nodes[i]).required("from").fail(fmt::format("\"{}\"", link.from),
                                                   "a GPU of this host");
    if (link.to.empty() || numa_index(host, link.to)) continue;
    const auto to = device_index(host, link.to);
    const bool good = to && (host.devices[*to].kind == DeviceKind::gpu ||
                             host.devices[*to].kind == DeviceKind::nvswitch);
    if (!good)
      ObjectReader(nodes[i]).required("to").fail(fmt::format("\"{}\"", link.to),
                                                 "a GPU, an NVSwitch or a NUMA node of this host");
  }
}

Host read_host(const Node& node) {
  ObjectReader object(node);
  Host host;
  Names names;
  host.name = object.required("name").name();
  if (const auto n = object.optional("virtual_machine")) host.virtual_machine = n->boolean();
  if (const auto n = object.optional("sockets_known")) host.sockets_known = n->boolean();
  if (const auto n = object.optional("software")) host.software = read_software(*n);
  for (const Node& item : object.required("sockets").array()) {
    ObjectReader socket(item);
    Socket& added = host.sockets.emplace_back();
    added.name = socket.required("name").name();
    if (const auto n = socket.optional("model")) added.model = n->name();
    socket.finish();
    names.add(added.name, item);
  }
  if (host.sockets.empty()) node.fail("\"sockets\" is empty; a host has at least one");
  for (const Node& item : object.required("numa_nodes").array()) {
    ObjectReader numa(item);
    NumaNode& added = host.numa_nodes.emplace_back();
    added.name = numa.required("name").name();
    const Node socket = numa.required("socket");
    added.socket = socket.name();
    if (const auto n = numa.optional("known")) added.known = n->boolean();
    if (const auto n = numa.optional("nccl")) added.nccl = read_nccl(*n);
    numa.finish();
    names.add(added.name, item);
    if (!socket_index(host, added.socket))
      socket.fail(fmt::format("\"{}\"", added.socket), "the name of one of this host's sockets");
  }
  if (host.numa_nodes.empty()) node.fail("\"numa_nodes\" is empty; a host has at least one");
  const Node device_list = object.required("devices");
  const std::vector<Node> devices = device_list.array();
  // Checking the tree is quadratic in the number of devices; no host comes near this limit.
  if (devices.size() > 4096)
    device_list.fail(fmt::format("{} devices", devices.size()), "up to 4096");
  for (const Node& item : devices) {
    host.devices.push_back(read_device(item));
    names.add(host.devices.back().name, item);
  }
  check_tree(host, devices);
  if (const auto n = object.optional("nvlinks")) {
    const std::vector<Node> links = n->array();
    for (const Node& item : links) host.nvlinks.push_back(read_nvlink(item));
    check_nvlinks(host, links);
  }
  if (const auto n = object.optional("distances"))
    for (const Node& item : n->array()) host.distances.push_back(read_stated_distance(item, host));
  if (const auto n = object.optional("remarks"))
    for (const Node& item : n->array()) host.remarks.push_back(read_remark(item));
  check_stated(host, node);
  object.finish();
  return host;
}

Fabric read_fabric(const Node& node) {
  ObjectReader object(node);
  Fabric fabric;
  fabric.model = object.required("model").name();
  if (const auto n = object.optional("mtu")) fabric.mtu = read_power_of_two(*n, 256, 8192);
  if (const auto n = object.optional("switches"))
    fabric.switches = static_cast<int>(n->integer(0, 16));
  object.finish();
  return fabric;
}

Staging read_staging(const Node& node) {
  ObjectReader object(node);
  Staging staging;
  if (const auto n = object.optional("chunk"))
    staging.chunk = read_power_of_two(*n, 4096, std::uint64_t{1} << 30U);
  if (const auto n = object.optional("depth"))
    staging.depth = static_cast<int>(n->integer(1, 1024));
  object.finish();
  return staging;
}

/// The only host of a server file. The file is checked on its own, so that errors name it and not
/// the cluster's file.
json::Value read_server(const Node& server, const std::filesystem::path& path) {
  if (!std::filesystem::exists(path))
    server.fail(fmt::format("there is no file {}", path.string()));
  json::Value file = json::parse_file(path.string());
  const auto* hosts = file.find("hosts");
  const auto* list = hosts != nullptr ? hosts->as<json::Array>() : nullptr;
  if (list == nullptr || list->size() != 1)
    server.fail(fmt::format("{} must have exactly one host", path.string()));
  json::Value host = list->front();
  if (host.find("server") != nullptr)
    server.fail(
        fmt::format("{} refers to a server itself; only one level is allowed", path.string()));
  (void)read_topology(std::move(file), path.string(), "");
  return host;
}

/// Replaces a host {"name": "h1", "server": "FILE"} by the host of that file under its new name.
void put_in_servers(json::Value& document, const std::string& name, const std::string& folder) {
  auto* hosts_value = document.find("hosts");
  auto* hosts = hosts_value != nullptr ? hosts_value->as<json::Array>() : nullptr;
  if (hosts == nullptr) return;  // the reader reports the error
  std::map<std::string, json::Value> servers;
  for (std::size_t i = 0; i < hosts->size(); ++i) {
    json::Value& host = (*hosts)[i];
    if (host.find("server") == nullptr) continue;
    const Node node(host, name, fmt::format("/hosts/{}", i));
    ObjectReader object(node);
    const std::string host_name = object.required("name").name();
    const Node server = object.required("server");
    object.finish();
    const std::filesystem::path path = std::filesystem::path(folder) / server.string();
    auto found = servers.find(path.string());
    if (found == servers.end())
      found = servers.emplace(path.string(), read_server(server, path)).first;
    json::Value copy = found->second;
    copy.set("name", host_name);
    host = std::move(copy);
  }
}

Topology read_document(const json::Value& document, const std::string& name) {
  ObjectReader object(Node(document, name));
  Topology topology;
  object.expect_format();
  topology.name = object.required("name").name();
  if (const auto n = object.optional("description")) topology.description = n->string();
  if (const auto n = object.optional("sources"))
    for (const Node& source : n->array()) topology.sources.push_back(source.string());
  std::set<std::string> names;
  for (const Node& node : object.required("hosts").array()) {
    topology.hosts.push_back(read_host(node));
    if (!names.insert(topology.hosts.back().name).second)
      node.fail(fmt::format("the host name \"{}\" appears twice; it must be unique",
                            topology.hosts.back().name));
  }
  if (topology.hosts.empty()) object.node().fail("\"hosts\" is empty; a topology has at least one");
  if (const auto n = object.optional("fabric")) topology.fabric = read_fabric(*n);
  if (const auto n = object.optional("staging")) topology.staging = read_staging(*n);
  if (const auto n = object.optional("nccl")) topology.nccl = read_nccl(*n);
  object.finish();
  return topology;
}

/// Why the document is refused after the first `count` settings; nullopt if it is accepted.
std::optional<std::string> refusal(json::Value document, const std::string& name,
                                   const std::vector<Setting>& settings, std::size_t count) {
  try {
    for (std::size_t i = 0; i < count; ++i) apply_setting(document, settings[i]);
    (void)read_document(document, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return std::nullopt;
}

/// After a failed read, throws the error again. If a setting caused it, names the setting first.
[[noreturn]] void blame(const json::Value& document, const std::string& name,
                        const std::vector<Setting>& settings) {
  std::optional<std::string> after = refusal(document, name, settings, settings.size());
  for (std::size_t i = settings.size(); i-- > 0;) {
    std::optional<std::string> before = refusal(document, name, settings, i);
    if (!before)
      throw InputError(fmt::format("--set {}={}: {}", printable(settings[i].key),
                                   printable(settings[i].value), *after));
    after = std::move(before);
  }
  throw InputError(*after);
}

}  // namespace

Topology read_topology(json::Value document, const std::string& name, const std::string& folder,
                       const std::vector<Setting>& settings) {
  put_in_servers(document, name, folder);
  if (settings.empty()) return read_document(document, name);
  json::Value changed = document;
  for (const Setting& setting : settings) apply_setting(changed, setting);
  try {
    return read_document(changed, name);
  } catch (const InputError&) {
    blame(document, name, settings);
  }
}

Topology load_topology(const std::string& path, const std::vector<Setting>& settings) {
  return read_topology(json::parse_file(path), path,
                       std::filesystem::path(path).parent_path().string(), settings);
}

}  // namespace gdr
