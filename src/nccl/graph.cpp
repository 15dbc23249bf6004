#include "src/nccl/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>

#include "src/common/error.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/write.hpp"

namespace gdr::nccl {
namespace {

// NCCL allows 256 to 576 nodes of a kind, depending on the version.
constexpr std::size_t most_nodes = 2048;
constexpr float local = 5000.0F;

std::string_view text_of(const NcclElement& element, std::string_view name) {
  const std::string* text = attribute(element, name);
  return text != nullptr ? std::string_view(*text) : std::string_view();
}

int number_of(const NcclElement& element, std::string_view name, int otherwise) {
  const auto value = integer_attribute(element, name);
  return value && *value >= -2'000'000'000 && *value <= 2'000'000'000 ? static_cast<int>(*value)
                                                                      : otherwise;
}

/// GB/s of a PCIe link by NCCL's table, which compares prefixes: an unknown speed counts as 8 GT/s,
/// a missing width as 16.
float pcie_bandwidth(const NcclElement& pci) {
  struct Speed {
    std::string_view text;
    int per_lane;  // in units of 100 Mb/s
  };
  static constexpr std::array<Speed, 10> speeds{{{"2.5 GT/s", 15},
                                                 {"5 GT/s", 30},
                                                 {"8 GT/s", 60},
                                                 {"16 GT/s", 120},
                                                 {"32 GT/s", 240},
                                                 {"5.0 GT/s PCIe", 30},
                                                 {"8.0 GT/s PCIe", 60},
                                                 {"16.0 GT/s PCIe", 120},
                                                 {"32.0 GT/s PCIe", 240},
                                                 {"64.0 GT/s PCIe", 480}}};
  const std::string_view text = text_of(pci, "link_speed");
  const auto found = std::find_if(speeds.begin(), speeds.end(),
                                  [&](const Speed& speed) { return text.starts_with(speed.text); });
  const int width = number_of(pci, "link_width", 0);
  return static_cast<float>((width == 0 ? 16 : width) *
                            (found != speeds.end() ? found->per_lane : 60) / 80.0);
}

enum class ClassType { pci, nvswitch, cpu, gpu, nic };

ClassType type_of_class(std::string_view pci_class) {
  if (pci_class.starts_with("0x068000")) return ClassType::nvswitch;
  if (pci_class.starts_with("0x068001")) return ClassType::cpu;
  if (pci_class.starts_with("0x03")) return ClassType::gpu;
  if (pci_class.starts_with("0x02")) return ClassType::nic;
  return ClassType::pci;
}

std::string bus_key(std::string_view bus_id) {
  std::string key(bus_id);
  std::transform(key.begin(), key.end(), key.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return key;
}

float between_cpus(const Node& cpu, const NcclElement& element, const Rules& rules) {
  if (cpu.arch == CpuArch::power) return 32.0F;
  if (cpu.arch == CpuArch::arm) return 6.0F;
  const int family = number_of(element, "familyid", 0);
  const int model = number_of(element, "modelid", 0);
  switch (cpu.vendor) {
    case CpuVendor::intel:
      if (family != 6 || model < 0x55) return 6.0F;
      if (rules.new_intel && model >= 0xcf) return 40.0F;
      return rules.new_intel && model >= 0x8f ? 22.0F : 10.0F;
    case CpuVendor::amd:
      return rules.amd_limited ? 16.0F : local;
    case CpuVendor::zhaoxin:
      return family == 7 && model == 0x5b ? 9.0F : 6.0F;
    case CpuVendor::unknown:
      break;
  }
  return local;
}

float nvlink_bandwidth(int sm, const Rules& rules) {
  if (sm >= 100) return rules.sm100_nvlink;
  if (sm >= 90) return rules.sm90_nvlink;
  if (sm == 86) return 12.0F;
  if (sm >= 60 && sm < 70) return 18.0F;
  return 20.0F;
}

class GraphBuilder {
 public:
  GraphBuilder(const Host& host, HostElements elements, const Rules& rules)
      : host_(host), elements_(std::move(elements)), rules_(rules) {
    for (std::size_t i = 0; i < host.devices.size(); ++i)
      children_[host.devices[i].under].push_back(i);
  }

  Graph build() {
    for (std::size_t i = 0; i < host_.numa_nodes.size(); ++i) add_cpu(i);
    for (std::size_t i = 0; i < host_.devices.size(); ++i) add_gpu_links(i);
    for (std::size_t i = 0; i < host_.devices.size(); ++i) add_switch_links(i);
    flatten_broadcom();
    for (const std::size_t a : graph_.cpus)
      for (const std::size_t b : graph_.cpus)
        if (a != b) connect(a, b, LinkType::sys, graph_.nodes[a].between_cpus);
    put_uplinks_last();
    return std::move(graph_);
  }

 private:
  std::size_t add_node(NodeKind kind, std::size_t device, std::size_t parent) {
    if (graph_.nodes.size() >= most_nodes)
      throw InputError(fmt::format("{}: more than {} nodes, which no version of NCCL accepts",
                                   host_.name, most_nodes));
    Node& node = graph_.nodes.emplace_back();
    node.kind = kind;
    node.device = device;
    node.parent = parent;
    return graph_.nodes.size() - 1;
  }

  /// Links between the same two nodes add up; faster ones come first.
  void connect(std::size_t from, std::size_t to, LinkType type, float bandwidth) {
    auto& links = graph_.nodes[from].links;
    auto link = std::find_if(links.begin(), links.end(),
                             [&](const Link& l) { return l.to == to && l.type == type; });
    if (link == links.end()) link = links.insert(links.end(), {type, 0, to});
    link->gigabytes_per_second += bandwidth;
    while (link != links.begin() &&
           std::prev(link)->gigabytes_per_second < link->gigabytes_per_second) {
      std::iter_swap(std::prev(link), link);
      --link;
    }
  }

  void connect_both(std::size_t a, std::size_t b, LinkType type, float bandwidth) {
    connect(a, b, type, bandwidth);
    connect(b, a, type, bandwidth);
  }

  void add_cpu(std::size_t numa) {
    const NcclElement& element = elements_.numa_nodes[numa].front();
    const std::size_t index = add_node(NodeKind::cpu, numa, graph_.nodes.size());
    graph_.cpus.push_back(index);
    Node& cpu = graph_.nodes[index];
    const std::string_view arch = text_of(element, "arch");
    const std::string_view vendor = text_of(element, "vendor");
    if (arch.starts_with("x86_64")) cpu.arch = CpuArch::x86;
    if (arch.starts_with("arm64")) cpu.arch = CpuArch::arm;
    if (arch.starts_with("ppc64")) cpu.arch = CpuArch::power;
    if (cpu.arch == CpuArch::x86 && vendor.starts_with("GenuineIntel"))
      cpu.vendor = CpuVendor::intel;
    if (cpu.arch == CpuArch::x86 && vendor.starts_with("AuthenticAMD")) cpu.vendor = CpuVendor::amd;
    if (cpu.arch == CpuArch::x86 &&
        (vendor.starts_with("CentaurHauls") || vendor.starts_with("  Shanghai  ")))
      cpu.vendor = CpuVendor::zhaoxin;
    cpu.between_cpus = between_cpus(cpu, element, rules_);
    add_below(host_.numa_nodes[numa].name, index);
  }

  void add_below(const std::string& name, std::size_t parent) {
    const auto found = children_.find(name);
    if (found == children_.end()) return;
    for (const std::size_t child : found->second) {
      const Device& device = host_.devices[child];
      if (device.kind == DeviceKind::host_bridge) add_below(device.name, parent);
      else if (elements_.devices[child].empty()) continue;
      else if (elements_.devices[child].front().tag == "nic") add_nic(child, parent, {}, local);
      else add_pci(child, parent);
    }
  }

  void add_pci(std::size_t device, std::size_t parent) {
    const auto& elements = elements_.devices[device];
    const NcclElement& pci = elements.front();
    const bool is_switch = attribute(pci, "class") != nullptr
                               ? type_of_class(text_of(pci, "class")) == ClassType::pci
                               : host_.devices[device].kind == DeviceKind::pci_switch;
    const NcclElement* gpu = find(elements, "gpu");
    if (gpu != nullptr) add_gpu(device, parent, *gpu);
    if (find(elements, "nic") != nullptr) {
      add_nic(device, parent, bus_key(text_of(pci, "busid")), pcie_bandwidth(pci));
    } else if (gpu == nullptr && is_switch) {
      const std::size_t index = add_node(NodeKind::pci, device, parent);
      by_bus_.emplace(bus_key(text_of(pci, "busid")), index);
      for (const std::string_view name :
           {"vendor", "device", "subsystem_vendor", "subsystem_device"})
        graph_.nodes[index].pci_ids = (graph_.nodes[index].pci_ids << 16U) |
                                      static_cast<std::uint64_t>(number_of(pci, name, 0) & 0xffff);
      add_below(host_.devices[device].name, index);
      connect_both(index, parent, LinkType::pci, pcie_bandwidth(pci));
    }
  }

  void add_gpu(std::size_t device, std::size_t parent, const NcclElement& element) {
    const std::size_t index = add_node(NodeKind::gpu, device, parent);
    Node& gpu = graph_.nodes[index];
    gpu.dev = number_of(element, "dev", static_cast<int>(graph_.gpus.size()));
    gpu.rank = number_of(element, "rank", static_cast<int>(graph_.gpus.size()));
    gpu.sm = number_of(element, "sm", 0);
    gpu.gdr = number_of(element, "gdr", 0) != 0;
    graph_.gpus.push_back(index);
    gpu_of_device_.emplace(device, index);
    const NcclElement& pci = elements_.devices[device].front();
    by_bus_.emplace(bus_key(text_of(pci, "busid")), index);
    connect_both(index, parent, LinkType::pci, pcie_bandwidth(pci));
  }

  /// As in NCCL, all NICs without an address form a single NIC of the host, below the first cpu
  /// that names one.
  void add_nic(std::size_t device, std::size_t parent, std::string key, float bandwidth) {
    if (rules_.merge_functions) key = key.substr(0, key.rfind('.'));
    const auto known = nic_of_.find(key);
    const std::size_t nic =
        known != nic_of_.end() ? known->second : add_node(NodeKind::nic, device, parent);
    for (const NcclElement& element : elements_.devices[device]) {
      if (element.tag != "net" || !integer_attribute(element, "dev")) continue;
      const std::size_t index = add_node(NodeKind::net, device, nic);
      Node& net = graph_.nodes[index];
      net.dev = number_of(element, "dev", 0);
      net.name = text_of(element, "name");
      net.gdr = number_of(element, "gdr", 0) != 0;
      const int megabits = number_of(element, "speed", 0);
      net.net_bandwidth = static_cast<float>((megabits <= 0 ? 10000 : megabits) / 8000.0);
      graph_.nets.push_back(index);
      connect_both(nic, index, LinkType::net, net.net_bandwidth);
    }
    if (known == nic_of_.end()) {
      nic_of_.emplace(std::move(key), nic);
      connect_both(nic, parent, LinkType::pci, bandwidth);
    }
  }

  [[nodiscard]] std::size_t cpu_above(std::size_t node) const {
    while (graph_.nodes[node].kind != NodeKind::cpu) node = graph_.nodes[node].parent;
    return node;
  }

  void add_gpu_links(std::size_t device) {
    const auto found = gpu_of_device_.find(device);
    if (found == gpu_of_device_.end()) return;
    const std::size_t gpu = found->second;
    for (const NcclElement& element : elements_.devices[device]) {
      const auto count = static_cast<float>(number_of(element, "count", 0));
      if (element.tag == "c2c" && rules_.c2c) {
        const auto bandwidth = static_cast<float>(number_of(element, "bw", 0)) * count / 1000.0F;
        connect_both(gpu, cpu_above(gpu), rules_.c2c_is_own_type ? LinkType::c2c : LinkType::nvl,
                     bandwidth);
      }
      if (element.tag != "nvlink") continue;
      const float bandwidth = count * nvlink_bandwidth(graph_.nodes[gpu].sm, rules_);
      const ClassType target = type_of_class(text_of(element, "tclass"));
      if (target == ClassType::gpu) {
        const auto peer = by_bus_.find(bus_key(text_of(element, "target")));
        if (peer != by_bus_.end() && graph_.nodes[peer->second].kind == NodeKind::gpu)
          connect(gpu, peer->second, LinkType::nvl, bandwidth);
      } else {
        if (target != ClassType::cpu && !nvswitch_) nvswitch_ = add_node(NodeKind::nvswitch, 0, 0);
        connect_both(gpu, target == ClassType::cpu ? cpu_above(gpu) : *nvswitch_, LinkType::nvl,
                     bandwidth);
      }
    }
  }

  void add_switch_links(std::size_t device) {
    for (const NcclElement& element : elements_.devices[device]) {
      if (element.tag != "pcilink") continue;
      const auto from = by_bus_.find(bus_key(text_of(elements_.devices[device].front(), "busid")));
      const auto to = by_bus_.find(bus_key(text_of(element, "target")));
      if (from == by_bus_.end() || to == by_bus_.end() ||
          graph_.nodes[to->second].kind != NodeKind::pci)
        continue;
      connect(from->second, to->second, LinkType::loc, local);
    }
  }

  /// Returns 4 or 5 if this is the upper or lower half of a Broadcom switch of that generation,
  /// else 0.
  [[nodiscard]] int broadcom_generation(std::uint64_t ids, bool lower) const {
    const std::uint64_t masked = ids & ~std::uint64_t{0xfff};
    if (masked == 0x1000c0101000a000) return 4;
    if (rules_.broadcom_gen5 && masked == (lower ? 0x1000c03010001000 : 0x1000c03010000000))
      return 5;
    return 0;
  }

  void flatten_broadcom() {
    for (std::size_t upper = 0; upper < graph_.nodes.size(); ++upper) {
      const std::uint64_t ids = graph_.nodes[upper].pci_ids;
      const int generation =
          graph_.nodes[upper].kind == NodeKind::pci && !graph_.nodes[upper].removed
              ? broadcom_generation(ids, false)
              : 0;
      if (generation == 0) continue;
      std::vector<std::size_t> halves;
      std::erase_if(graph_.nodes[upper].links, [&](const Link& link) {
        const Node& lower = graph_.nodes[link.to];
        const bool same = rules_.broadcom_same_id
                              ? lower.pci_ids == ids
                              : broadcom_generation(lower.pci_ids, true) == generation;
        if (lower.kind != NodeKind::pci || !same) return false;
        halves.push_back(link.to);
        return true;
      });
      for (const std::size_t half : halves) melt(half, upper);
      graph_.nodes[upper].pci_ids |= 0xffff;  // do not match it again from above
    }
  }

  /// Moves all links of `half` to `upper`.
  void melt(std::size_t half, std::size_t upper) {
    Node& lower = graph_.nodes[half];
    lower.removed = true;
    for (const Link& link : lower.links) {
      if (link.to == upper) continue;
      graph_.nodes[upper].links.push_back(link);
      Node& other = graph_.nodes[link.to];
      if (other.parent == half) other.parent = upper;
      const auto back = std::find_if(other.links.begin(), other.links.end(),
                                     [&](const Link& l) { return l.to == half; });
      if (back != other.links.end()) back->to = upper;
    }
    lower.links.clear();
  }

  /// NCCL orders links: NVLink first, then down the tree, then up.
  void put_uplinks_last() {
    for (Node& node : graph_.nodes) {
      if (node.removed || node.kind == NodeKind::cpu || node.kind == NodeKind::net ||
          node.kind == NodeKind::nvswitch)
        continue;
      const auto up = std::find_if(node.links.begin(), node.links.end(),
                                   [&](const Link& link) { return link.to == node.parent; });
      if (up != node.links.end()) std::rotate(up, up + 1, node.links.end());
    }
  }

  const Host& host_;
  HostElements elements_;
  const Rules& rules_;
  Graph graph_;
  std::map<std::string_view, std::vector<std::size_t>> children_;
  std::map<std::string, std::size_t> by_bus_;
  std::map<std::string, std::size_t> nic_of_;
  std::map<std::size_t, std::size_t> gpu_of_device_;
  std::optional<std::size_t> nvswitch_;
};

}  // namespace

Graph build_graph(const Topology& topology, std::size_t host, const ModelLibrary* models,
                  const Rules& rules) {
  return GraphBuilder(topology.hosts.at(host), host_elements(topology, host, models, true), rules)
      .build();
}

}  // namespace gdr::nccl
