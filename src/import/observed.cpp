#include "src/import/observed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/nccl/xml/facts.hpp"

namespace gdr::observed {
namespace {

template <typename Machine>
auto* find_in(Machine& machine, const std::string& address) {
  for (auto& function : machine.functions)
    if (!address.empty() && function.address == address) return &function;
  return static_cast<decltype(&machine.functions.front())>(nullptr);
}

/// Merges the fields of one function from two sources.
class FunctionMerger {
 public:
  FunctionMerger(Function& into, const Function& from, std::vector<Remark>& remarks)
      : into_(into), from_(from), remarks_(remarks) {}

  void merge() {
    text("root bus", into_.root_bus, from_.root_bus);
    text("PCI id", into_.pci_id, from_.pci_id);
    text("RDMA device", into_.rdma_device, from_.rdma_device);
    if (into_.text.empty()) into_.text = from_.text;
    if (into_.driver.empty()) into_.driver = from_.driver;
    const bool same_class =
        into_.pci_class && from_.pci_class && (*into_.pci_class >> 8U) == (*from_.pci_class >> 8U);
    if (!same_class) value("class", into_.pci_class, from_.pci_class);
    fill(into_.secondary, from_.secondary);
    fill(into_.subordinate, from_.subordinate);
    fill(into_.port_type, from_.port_type);
    if (into_.numa_node.value_or(-1) < 0)
      into_.numa_node = from_.numa_node ? from_.numa_node : into_.numa_node;
    else if (from_.numa_node.value_or(-1) >= 0)
      value("NUMA node", into_.numa_node, from_.numa_node);
    fill(into_.link, from_.link);
    fill(into_.link_capability, from_.link_capability);
    fill(into_.acs, from_.acs);
    into_.hidden = into_.hidden && from_.hidden;
    into_.no_acs = into_.no_acs || from_.no_acs;
    fill(into_.max_payload, from_.max_payload);
    fill(into_.max_read_request, from_.max_read_request);
    fill(into_.relaxed_ordering, from_.relaxed_ordering);
    fill(into_.ats, from_.ats);
    fill(into_.iommu_group, from_.iommu_group);
    fill(into_.rdma_ports, from_.rdma_ports);
    fill(into_.port_rate, from_.port_rate);
    fill(into_.link_layer, from_.link_layer);
    if (into_.bars.empty()) into_.bars = from_.bars;
    if (into_.networks.empty()) into_.networks = from_.networks;
  }

 private:
  template <typename T>
  static void fill(std::optional<T>& into, const std::optional<T>& from) {
    if (!into) into = from;
  }
  void contradiction(std::string_view what, const std::string& one, const std::string& other) {
    remarks_.push_back(
        {"sources-contradict", Severity::warning, into_.address,
         fmt::format("Two sources give different values for the {} of {}: {} and {}.", what,
                     into_.address, one, other),
         "Take all listings from one machine in one state; gdr uses the first value."});
  }
  void text(std::string_view what, std::string& into, const std::string& from) {
    if (into.empty()) into = from;
    else if (!from.empty() && from != into) contradiction(what, into, from);
  }
  template <typename T>
  void value(std::string_view what, std::optional<T>& into, const std::optional<T>& from) {
    if (!into) into = from;
    else if (from && *from != *into)
      contradiction(what, fmt::format("{}", *into), fmt::format("{}", *from));
  }

  Function& into_;
  const Function& from_;
  std::vector<Remark>& remarks_;
};

void merge_software(Software& into, const Software& from) {
  if (into.kernel.empty()) into.kernel = from.kernel;
  if (!into.iommu) into.iommu = from.iommu;
  if (!into.nvidia_peermem) into.nvidia_peermem = from.nvidia_peermem;
  if (!into.open_kernel_modules) into.open_kernel_modules = from.open_kernel_modules;
  if (into.cuda.empty()) into.cuda = from.cuda;
  if (into.nccl_version.empty()) into.nccl_version = from.nccl_version;
  if (into.nccl_net_gdr_level.empty()) into.nccl_net_gdr_level = from.nccl_net_gdr_level;
}

void merge_processor(Processor& into, const Processor& from) {
  if (into.vendor.empty()) into.vendor = from.vendor;
  if (!into.family) into.family = from.family;
  if (!into.model) into.model = from.model;
  if (into.name.empty()) into.name = from.name;
  if (!into.packages) into.packages = from.packages;
  if (!into.numa_nodes) into.numa_nodes = from.numa_nodes;
}

void merge_functions(Machine& machine, const Machine& other) {
  std::vector<std::size_t> index;
  std::map<std::string, std::size_t> known;
  for (std::size_t i = 0; i < machine.functions.size(); ++i)
    if (!machine.functions[i].address.empty()) known.emplace(machine.functions[i].address, i);
  for (const Function& function : other.functions) {
    const auto found = function.address.empty() ? known.end() : known.find(function.address);
    if (found != known.end()) {
      index.push_back(found->second);
      FunctionMerger(machine.functions[found->second], function, machine.remarks).merge();
      continue;
    }
    index.push_back(machine.functions.size());
    if (!function.address.empty()) known.emplace(function.address, machine.functions.size());
    machine.functions.push_back(function);
    machine.functions.back().above.reset();
  }
  for (std::size_t i = 0; i < other.functions.size(); ++i)
    if (const auto above = other.functions[i].above; above && !machine.functions[index[i]].above)
      machine.functions[index[i]].above = index[*above];
}

}  // namespace

Function* find(Machine& machine, const std::string& address) { return find_in(machine, address); }
const Function* find(const Machine& machine, const std::string& address) {
  return find_in(machine, address);
}

std::string full_address(std::string_view text) {
  const bool has_domain = std::count(text.begin(), text.end(), ':') == 2;
  return nccl::parse_address(has_domain ? std::string(text) : "0000:" + std::string(text));
}

std::optional<int> bus_of(const std::string& address) {
  if (address.size() < 12) return std::nullopt;
  int bus = 0;
  const char* at = address.data() + address.size() - 7;
  const auto [end, error] = std::from_chars(at, at + 2, bus, 16);
  return error == std::errc{} && end == at + 2 ? std::optional(bus) : std::nullopt;
}

std::string bus_text(const std::string& address) {
  return address.size() < 12 ? std::string() : address.substr(0, address.size() - 5);
}

void merge(Machine& machine, const Machine& other) {
  merge_functions(machine, other);
  for (const NumaNode& node : other.numa_nodes) {
    const auto same = std::find_if(machine.numa_nodes.begin(), machine.numa_nodes.end(),
                                   [&](const NumaNode& n) { return n.id == node.id; });
    if (same == machine.numa_nodes.end()) machine.numa_nodes.push_back(node);
    else if (!same->package) same->package = node.package;
  }
  merge_processor(machine.processor, other.processor);
  merge_software(machine.software, other.software);
  if (!machine.virtual_machine) machine.virtual_machine = other.virtual_machine;
  if (!machine.matrix) machine.matrix = other.matrix;
  for (const auto& [into, from] : {std::pair(&machine.nvlinks, &other.nvlinks)})
    if (into->empty()) *into = *from;
  machine.loose_acs.insert(machine.loose_acs.end(), other.loose_acs.begin(), other.loose_acs.end());
  machine.remarks.insert(machine.remarks.end(), other.remarks.begin(), other.remarks.end());
  for (const std::string& format : other.formats)
    if (std::find(machine.formats.begin(), machine.formats.end(), format) == machine.formats.end())
      machine.formats.push_back(format);
}

void resolve_tree(Machine& machine) {
  std::map<std::string, std::size_t> bridge_of_bus;
  for (std::size_t i = 0; i < machine.functions.size(); ++i) {
    const Function& function = machine.functions[i];
    if (function.address.empty() || !function.secondary || *function.secondary == 0) continue;
    const std::string domain = function.address.substr(0, function.address.size() - 8);
    bridge_of_bus.emplace(fmt::format("{}:{:02x}", domain, *function.secondary), i);
  }
  for (std::size_t i = 0; i < machine.functions.size(); ++i) {
    Function& function = machine.functions[i];
    if (function.above) continue;
    const auto bridge = bridge_of_bus.find(bus_text(function.address));
    if (bridge != bridge_of_bus.end() && bridge->second != i) function.above = bridge->second;
  }
  // Bus numbers of a broken listing can form a cycle: a function that would be its own ancestor
  // moves to the top.
  for (std::size_t i = 0; i < machine.functions.size(); ++i) {
    std::size_t steps = 0;
    for (auto at = machine.functions[i].above; at; at = machine.functions[*at].above)
      if (*at == i || ++steps > 64) {
        machine.functions[i].above.reset();
        break;
      }
  }
  for (Function& function : machine.functions) {
    const Function* top = &function;
    while (top->above) top = &machine.functions[*top->above];
    if (function.root_bus.empty()) function.root_bus = top->root_bus;
    // A root port, or a bridge with nothing above it, is on a root bus.
    const bool on_root =
        top->port_type ? *top->port_type == PortType::root : top->secondary.has_value();
    if (function.root_bus.empty() && on_root) function.root_bus = bus_text(top->address);
  }
}

}  // namespace gdr::observed
