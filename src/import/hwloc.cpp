#include "src/import/hwloc.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"

namespace gdr::observed {
namespace {

std::string_view value(const xml::Element& element, std::string_view name) {
  const std::string* found = element.attribute(name);
  return found != nullptr ? std::string_view(*found) : std::string_view();
}

/// The only bit set in "0x00000001" or "0x00000100,,0x0"; nullopt if there is none or several.
std::optional<int> only_bit(std::string_view set) {
  std::optional<int> bit;
  int base = 32 * static_cast<int>(std::count(set.begin(), set.end(), ','));
  while (!set.empty()) {
    const auto end = std::min(set.find(','), set.size());
    std::string_view group = set.substr(0, end);
    set.remove_prefix(std::min(end + 1, set.size()));
    if (group.starts_with("0x")) group.remove_prefix(2);
    if (group.size() > 8) return std::nullopt;
    unsigned bits = 0;
    for (const char c : group) {
      const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
      if (digit < 0) return std::nullopt;
      bits = bits << 4U | static_cast<unsigned>(digit);
    }
    if (bits != 0) {
      if (bit || !std::has_single_bit(bits) || base > 4064) return std::nullopt;
      bit = base + std::countr_zero(bits);
    }
    base -= 32;
  }
  return bit;
}

/// The place of an object.
struct Place {
  std::optional<int> node;
  std::optional<int> package;
  std::optional<std::size_t> bridge;
  std::string root_bus;
  std::optional<std::size_t> device;
};

class Reader {
 public:
  void walk(const xml::Element& element, Place place) {
    if (element.tag == "object") object(element, place);
    if (element.tag == "info") info(element, place);
    for (const xml::Element& child : element.children)
      if (child.tag == "object" || child.tag == "info") walk(child, place);
  }

  Machine machine;

 private:
  void object(const xml::Element& element, Place& place) {
    const std::string_view type = value(element, "type");
    if (const std::string* nodes = element.attribute("nodeset")) place.node = only_bit(*nodes);
    if (type == "Package" || type == "Socket") package(element, place);
    if (type == "NUMANode" || type == "Node") node(element, place);
    if (type == "Bridge") bridge(element, place);
    if (type == "PCIDev") place.device = function(element, place);
    if (type == "OSDev") os_device(element, place);
  }

  void package(const xml::Element& element, Place& place) {
    place.package = text::whole_int(value(element, "os_index"));
    packages_ += 1;
    machine.processor.packages = packages_;
    // hwloc 1 puts a node's package below the node.
    if (place.node && place.package)
      for (NumaNode& one : machine.numa_nodes)
        if (one.id == *place.node && !one.package) one.package = place.package;
  }

  void node(const xml::Element& element, Place& place) {
    const auto id = text::whole_int(value(element, "os_index"));
    if (!id || *id < 0 || *id > 4095) return;
    place.node = id;
    const auto same = [&](const NumaNode& one) { return one.id == *id; };
    if (std::none_of(machine.numa_nodes.begin(), machine.numa_nodes.end(), same))
      machine.numa_nodes.push_back({*id, place.package});
  }

  void bridge(const xml::Element& element, Place& place) {
    const std::string_view pci = value(element, "bridge_pci");  // "0000:[01-07]"
    const auto open = pci.find(":[");
    if (open == std::string_view::npos) return;
    const auto first = text::leading_int(pci.substr(open + 2), 16);
    const auto dash = pci.find('-', open);
    const auto last =
        dash == std::string_view::npos ? first : text::leading_int(pci.substr(dash + 1), 16);
    if (!first || !last || *first < 0 || *last > 255) return;
    if (value(element, "bridge_type") == "0-1") {
      place.root_bus =
          fmt::format("{}:{:02x}", pci.substr(0, std::min<std::size_t>(open, 8)), *first);
      return;
    }
    const auto index = function(element, place);
    if (!index) return;
    machine.functions[*index].secondary = first;
    machine.functions[*index].subordinate = last;
    place.bridge = index;
  }

  std::optional<std::size_t> function(const xml::Element& element, const Place& place) {
    Function made;
    made.address = full_address(value(element, "pci_busid"));
    if (made.address.empty()) return std::nullopt;
    made.root_bus = place.root_bus;
    made.above = place.bridge;
    made.numa_node = place.node;
    const auto type =
        text::split_words(value(element, "pci_type"));  // "0302 [10de:1db1] [10de:1212] a1"
    if (!type.empty())
      if (const auto number = text::whole_int(type[0], 16); number && *number >= 0)
        made.pci_class = static_cast<unsigned>(*number) << 8U;
    if (type.size() > 1 && type[1].size() == 11 && type[1].front() == '[') {
      made.pci_id = std::string(type[1].substr(1, 9));
      const bool good = made.pci_id[4] == ':' &&
                        made.pci_id.find_first_not_of("0123456789abcdef:") == std::string::npos &&
                        std::count(made.pci_id.begin(), made.pci_id.end(), ':') == 1;
      if (!good) made.pci_id.clear();
    }
    if (machine.functions.size() >= 16384) throw InputError("more than 16384 PCI functions");
    machine.functions.push_back(std::move(made));
    return machine.functions.size() - 1;
  }

  void os_device(const xml::Element& element, const Place& place) {
    if (!place.device) return;
    Function& function = machine.functions[*place.device];
    const std::string name = text::printable(value(element, "name"), 40);
    const bool has_guid = std::any_of(
        element.children.begin(), element.children.end(), [](const xml::Element& child) {
          return child.tag == "info" && value(child, "name") == "NodeGUID";
        });
    // The type is a number in versions 1 and 2 (3 is RDMA) and a bit set in version 3 (32 is RDMA);
    // some files call an RDMA device a network.
    const int type = text::whole_int(value(element, "osdev_type")).value_or(-1);
    const bool rdma = type == 3 || (type >= 8 && (type & 32) != 0) || has_guid ||
                      name.starts_with("mlx4_") || name.starts_with("mlx5_");
    if (rdma) function.rdma_device = name;
    else if (function.pci_class && *function.pci_class >> 16U == 0x02)
      function.networks.push_back(name);
  }

  void info(const xml::Element& element, const Place& place) {
    const std::string_view name = value(element, "name");
    const std::string_view text = value(element, "value");
    Processor& processor = machine.processor;
    if (name == "CPUVendor") processor.vendor = text::printable(text, 20);
    if (name == "CPUFamilyNumber") processor.family = text::whole_int(text);
    if (name == "CPUModelNumber") processor.model = text::whole_int(text);
    if (name == "CPUModel") processor.name = text::printable(text, 80);
    if (name == "DMISysVendor" && text == "QEMU") machine.virtual_machine = true;
    if (name == "PCIDevice" && place.device)
      machine.functions[*place.device].text = text::printable(text);
  }

  int packages_ = 0;
};

}  // namespace

Machine read_hwloc(const xml::Element& root, const std::string& name) {
  Reader reader;
  reader.walk(root, {});
  if (reader.machine.functions.empty())
    throw InputError(
        fmt::format("{}: hwloc XML without PCI devices; lstopo --whole-io includes them", name));
  Machine& machine = reader.machine;
  if (!machine.numa_nodes.empty())
    machine.processor.numa_nodes = static_cast<int>(machine.numa_nodes.size());
  machine.formats = {"hwloc"};
  return std::move(machine);
}

}  // namespace gdr::observed
