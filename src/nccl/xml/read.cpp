#include "src/nccl/xml/read.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <map>

#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/xml_tree.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/facts.hpp"
#include "src/nccl/xml/identify.hpp"
#include "src/topology/join.hpp"

namespace gdr {
namespace {

using nccl::Identifier;

bool is_device(const xml::Element& element) { return element.tag == "pci"; }
bool is_device_of_cpu(const xml::Element& element) {
  return element.tag == "pci" || element.tag == "nic";
}

/// Checks root and version, and names the kind of files that people mistake for a topology.
void check_root(const xml::Element& root, const std::string& name) {
  if (root.tag == "graphs")
    throw InputError(fmt::format(
        "{}: a graph file (NCCL_GRAPH_FILE: rings and trees), not a topology (NCCL_TOPO_FILE)",
        name));
  if (root.tag == "topology")
    throw InputError(fmt::format("{}: a topology of hwloc, not of NCCL", name));
  if (root.tag != "system")
    throw InputError(fmt::format("{}: starts with <{}>; a topology of NCCL starts with <system>",
                                 name, root.tag));
  const std::string* version = root.attribute("version");
  if (version == nullptr || (*version != "1" && *version != "2"))
    throw InputError(fmt::format("{}: <system> has version \"{}\", allowed: 1 (NCCL), 2 (RCCL)",
                                 name, version != nullptr ? *version : ""));
}

class HostBuilder {
 public:
  HostBuilder(Host& host, const Identifier& identifier, const std::string& file)
      : host_(host), identifier_(identifier), file_(file) {}

  void add_cpu(const xml::Element& element) {
    NumaNode numa;
    numa.nccl = nccl::keep(element, is_device_of_cpu);
    const auto id = nccl::integer_attribute(numa.nccl.front(), "numaid");
    if (!id || *id < -1 || *id > 4095)
      throw InputError(fmt::format(
          "{}: a <cpu> has no numaid, or one that is not a number from -1 to 4095", file_));
    numa.name = fmt::format("numa{}", *id);
    if (numa_index(host_, numa.name))
      throw InputError(fmt::format("{}: numaid {} appears twice in a host", file_, *id));
    numa.socket = fmt::format("cpu{}", *id);
    host_.sockets.push_back({numa.socket, identifier_.cpu_model(numa.nccl.front())});
    host_.numa_nodes.push_back(numa);
    for (const xml::Element& child : element.children)
      if (is_device_of_cpu(child)) add_device(child, numa.name);
  }

  /// Names the devices when all are known.
  void finish() {
    name_in_order(DeviceKind::gpu, "gpu",
                  [](const Device& device) { return lowest(device, "gpu"); });
    name_in_order(DeviceKind::nic, "nic",
                  [](const Device& device) { return lowest(device, "net"); });
    const auto file_order = [](const Device&) { return std::int64_t{0}; };
    name_in_order(DeviceKind::pci_switch, "sw", file_order);
    name_in_order(DeviceKind::nvme, "nvme", file_order);
    name_in_order(DeviceKind::nvswitch, "nvswitch", file_order);
    name_in_order(DeviceKind::other, "pci", file_order);
    for (std::size_t i = 0; i < host_.devices.size(); ++i)
      if (const std::size_t parent = parents_[i]; parent != none)
        host_.devices[i].under = host_.devices[parent].name;
    try {
      host_.nvlinks = nccl::read_nvlinks(host_);
    } catch (const InputError& error) {
      throw InputError(fmt::format("{}: {}", file_, error.what()));
    }
    group_sockets();
  }

 private:
  /// The file does not say which NUMA nodes share a socket. Two nodes are two sockets. Eight nodes
  /// of an AMD machine are two sockets of four, since EPYC has at most two sockets with four nodes
  /// each. For other counts each node gets a socket of its own, and the topology marks the sockets
  /// as unknown.
  void group_sockets() {
    const std::size_t nodes = host_.numa_nodes.size();
    if (nodes <= 2) return;
    const auto amd = [](const NumaNode& numa) {
      const auto& attributes = numa.nccl.front().attributes;
      return std::find(attributes.begin(), attributes.end(),
                       std::pair<std::string, std::string>("vendor", "AuthenticAMD")) !=
             attributes.end();
    };
    if (nodes != 8 || !std::all_of(host_.numa_nodes.begin(), host_.numa_nodes.end(), amd)) {
      host_.sockets_known = false;
      return;
    }
    std::vector<NumaNode*> by_id;
    for (NumaNode& numa : host_.numa_nodes) by_id.push_back(&numa);
    std::sort(by_id.begin(), by_id.end(), [](const NumaNode* a, const NumaNode* b) {
      return nccl::integer_attribute(a->nccl.front(), "numaid") <
             nccl::integer_attribute(b->nccl.front(), "numaid");
    });
    for (std::size_t i = 0; i < nodes; ++i) by_id[i]->socket = fmt::format("cpu{}", i / 4);
    const std::string model = host_.sockets.front().model;
    host_.sockets = {{"cpu0", model}, {"cpu1", model}};
  }

  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();

  void add_device(const xml::Element& element, const std::string& under,
                  std::size_t parent = none) {
    const std::size_t index = host_.devices.size();
    Device& device = host_.devices.emplace_back();
    parents_.push_back(parent);
    device.under = under;
    const auto is_child = [&](const xml::Element& child) {
      return element.tag == "pci" && is_device(child);
    };
    device.nccl = nccl::keep(element, is_child);
    if (std::any_of(element.children.begin(), element.children.end(), is_child))
      device.kind = DeviceKind::pci_switch;
    nccl::read_facts(device);
    device.model = identifier_.device_model(device);
    if (device.kind == DeviceKind::pci_switch) look_at_bridge(device);
    for (const xml::Element& child : element.children)
      if (is_child(child)) add_device(child, {}, index);
  }

  void look_at_bridge(Device& bridge) {
    const bool made_up = nccl::is_virtual_bridge(bridge.nccl.front());
    if (made_up) bridge.model = "virtual-bridge";
    // Cloud providers write ffff:ff for real switches that the guest does not see; trust their
    // attributes.
    if (made_up || bridge.address.starts_with("ffff:ff:")) host_.virtual_machine = true;
  }

  /// The lowest dev among the elements with this tag; devices without one come last.
  static std::int64_t lowest(const Device& device, std::string_view tag) {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::max();
    for (const NcclElement& element : device.nccl)
      if (element.tag == tag)
        lowest = std::min(lowest, nccl::integer_attribute(element, "dev").value_or(lowest));
    return lowest;
  }

  template <typename Order>
  void name_in_order(DeviceKind kind, std::string_view prefix, Order order) {
    std::vector<std::pair<std::int64_t, std::size_t>> found;
    for (std::size_t i = 0; i < host_.devices.size(); ++i)
      if (host_.devices[i].kind == kind) found.emplace_back(order(host_.devices[i]), i);
    std::sort(found.begin(), found.end());
    for (std::size_t i = 0; i < found.size(); ++i)
      host_.devices[found[i].second].name = fmt::format("{}{}", prefix, i);
  }

  Host& host_;
  const Identifier& identifier_;
  const std::string& file_;
  std::vector<std::size_t> parents_;
};

void add_file(Topology& topology, const NamedText& file, const Identifier& identifier) {
  const xml::Element root = xml::parse(file.text, file.name);
  check_root(root, file.name);
  const std::size_t first = topology.hosts.size();
  std::map<std::string, std::size_t> host_of_hash;
  std::vector<HostBuilder> builders;
  const auto count = std::count_if(root.children.begin(), root.children.end(),
                                   [](const xml::Element& e) { return e.tag == "cpu"; });
  if (count == 0) throw InputError(fmt::format("{}: <system> has no <cpu>", file.name));
  topology.hosts.reserve(first + static_cast<std::size_t>(count));  // the builders hold references
  for (const xml::Element& child : root.children) {
    if (child.tag != "cpu") continue;
    const std::string* hash = child.attribute("host_hash");
    const auto [at, is_new] =
        host_of_hash.emplace(hash != nullptr ? *hash : std::string(), builders.size());
    if (is_new) {
      Host& host = topology.hosts.emplace_back();
      host.name = fmt::format("h{}", topology.hosts.size() - 1);
      builders.emplace_back(host, identifier, file.name);
      const auto kept =
          nccl::keep(root, [](const xml::Element& element) { return element.tag == "cpu"; });
      topology.nccl.insert(topology.nccl.end(), kept.begin(), kept.end());
    }
    builders[at->second].add_cpu(child);
  }
  for (HostBuilder& builder : builders) builder.finish();
}

/// The file's name without folder and extension, reduced to what a topology's name allows.
std::string topology_name(const std::string& file) {
  std::string name = std::filesystem::path(file).stem().string();
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_' && c != '.')
      c = '-';
  return name.empty() ? "imported" : name;
}

}  // namespace

Topology import_nccl_xml(const std::vector<NamedText>& texts, const ModelLibrary* models) {
  if (texts.empty()) throw InputError("nccl-xml: at least one file is needed");
  const Identifier identifier(models);
  Topology topology;
  topology.name = topology_name(texts.front().name);
  topology.description = texts.size() == 1
                             ? "imported from a topology file of NCCL"
                             : fmt::format("imported from {} topology files of NCCL", texts.size());
  for (const NamedText& text : texts) add_file(topology, text, identifier);
  if (topology.hosts.size() > 1) topology.fabric = fabric_of_nics(topology);
  return topology;
}

Topology import_nccl_xml(const std::vector<std::string>& files, const ModelLibrary* models) {
  std::vector<NamedText> texts;
  for (const std::string& file : files) texts.push_back({read_file(file), file});
  return import_nccl_xml(texts, models);
}

}  // namespace gdr
