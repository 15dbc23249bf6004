#include "src/nccl/xml/facts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "src/common/error.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/identify.hpp"

namespace gdr::nccl {
namespace {

constexpr std::string_view nvidia = "10de";
constexpr std::string_view amd = "1002";

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

bool is_hex(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
  });
}

/// "10de" for "0x10de"; empty for anything else.
std::string hex4(const NcclElement& element, std::string_view name) {
  const std::string* text = attribute(element, name);
  if (text == nullptr || text->size() != 6) return {};
  const std::string digits = lower(*text);
  return digits.starts_with("0x") && is_hex(digits.substr(2)) ? digits.substr(2) : std::string();
}

/// The kind by class, child elements and, for displays, vendor: neither the VGA of a management
/// controller nor AMD's old boards of class 0x0300 are accelerators.
DeviceKind kind_of(const std::vector<NcclElement>& elements, bool has_children) {
  if (has_children) return DeviceKind::pci_switch;
  if (elements.front().tag == "nic" || find(elements, "nic") != nullptr)
    return find(elements, "gpu") != nullptr ? DeviceKind::gpu : DeviceKind::nic;
  if (find(elements, "gpu") != nullptr) return DeviceKind::gpu;
  const std::string* text = attribute(elements.front(), "class");
  const std::string pci_class = text != nullptr ? lower(*text) : std::string();
  const std::string vendor = hex4(elements.front(), "vendor");
  if (pci_class.starts_with("0x0302")) return DeviceKind::gpu;
  if (pci_class.starts_with("0x0300") && vendor == nvidia) return DeviceKind::gpu;
  if ((pci_class.starts_with("0x0380") || pci_class.starts_with("0x1200")) &&
      (vendor == nvidia || vendor == amd))
    return DeviceKind::gpu;
  if (pci_class.starts_with("0x02")) return DeviceKind::nic;
  if (pci_class.starts_with("0x0108")) return DeviceKind::nvme;
  if (pci_class.starts_with("0x0604")) return DeviceKind::pci_switch;
  if (pci_class == "0x068000") return DeviceKind::nvswitch;
  return DeviceKind::other;
}

/// The value that all nets of a NIC have; nullopt if they differ.
template <typename T, typename Read>
std::optional<T> common(const std::vector<const NcclElement*>& nets, Read read) {
  std::optional<T> value;
  for (const NcclElement* net : nets) {
    const std::optional<T> one = read(*net);
    if (!one || (value && *value != *one)) return std::nullopt;
    value = one;
  }
  return value;
}

std::optional<bool> flag(const NcclElement& element, std::string_view name) {
  const auto value = integer_attribute(element, name);
  return value ? std::optional<bool>(*value != 0) : std::nullopt;
}

bool is_device_name(std::string_view text) {
  const auto good = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), good);
}

void read_nic(Device& device) {
  std::vector<const NcclElement*> nets;
  for (const NcclElement& element : device.nccl)
    if (element.tag == "net") nets.push_back(&element);
  device.ports.reset();
  constexpr std::size_t most_ports =
      16;  // what a topology file allows; more would be virtual interfaces
  if (!nets.empty() && nets.size() <= most_ports) device.ports = static_cast<int>(nets.size());
  device.port_rate =
      common<Bandwidth>(nets, [](const NcclElement& net) -> std::optional<Bandwidth> {
        const auto megabits = integer_attribute(net, "speed");
        if (!megabits || *megabits <= 0 || *megabits > 100'000'000) return std::nullopt;
        return Bandwidth{static_cast<double>(*megabits) * 1.25e5};
      });
  device.gdr = common<bool>(nets, [](const NcclElement& net) { return flag(net, "gdr"); });
  // Verbs devices number ports from 1. NCCL's socket transport writes 0 and the name of an
  // interface.
  const auto name =
      common<std::string>(nets, [](const NcclElement& net) -> std::optional<std::string> {
        const auto port = integer_attribute(net, "port");
        const std::string* text = attribute(net, "name");
        return port && *port >= 1 && text != nullptr && is_device_name(*text) ? std::optional(*text)
                                                                              : std::nullopt;
      });
  device.rdma_device = name.value_or("");
  const std::string* pci_class = attribute(device.nccl.front(), "class");
  device.link_layer.reset();
  if (pci_class != nullptr && pci_class->starts_with("0x0207"))
    device.link_layer = LinkLayer::infiniband;
  if (pci_class != nullptr && pci_class->starts_with("0x0200"))
    device.link_layer = LinkLayer::ethernet;
}

}  // namespace

std::optional<PcieLink> parse_link(std::string_view speed, std::string_view width) {
  double per_lane = 0;
  const auto [stop, error] = std::from_chars(speed.data(), speed.data() + speed.size(), per_lane);
  const std::string_view unit = speed.substr(static_cast<std::size_t>(stop - speed.data()));
  if (error != std::errc{} || !unit.starts_with(" GT/s")) return std::nullopt;
  int lanes = 0;
  const auto [width_end, width_error] =
      std::from_chars(width.data(), width.data() + width.size(), lanes);
  if (width_error != std::errc{} || width_end != width.data() + width.size()) return std::nullopt;
  constexpr std::array<int, 7> widths{1, 2, 4, 8, 12, 16, 32};
  if (std::find(widths.begin(), widths.end(), lanes) == widths.end()) return std::nullopt;
  for (int generation = 1; generation <= 6; ++generation)
    if (gigatransfers_per_lane(generation) == per_lane) return PcieLink{generation, lanes};
  return std::nullopt;
}

std::string link_speed_text(int generation) {
  return fmt::format("{:.1f} GT/s PCIe", gigatransfers_per_lane(generation));
}

std::string parse_address(std::string_view bus_id) {
  const std::string text = lower(bus_id);
  const std::size_t domain = text.find(':');
  const bool shaped = domain != std::string::npos && domain >= 4 && domain <= 8 &&
                      text.size() == domain + 8 && text[domain + 3] == ':' &&
                      text[domain + 6] == '.';
  if (!shaped) return {};
  std::string digits = text;
  for (const std::size_t at : {domain + 6, domain + 3, domain}) digits.erase(at, 1);
  return is_hex(digits) ? text : std::string();
}

bool is_virtual_bridge(const NcclElement& pci) {
  const std::string vendor = hex4(pci, "vendor");
  const std::string device = hex4(pci, "device");
  if (vendor == "1b36")
    return device == "0001" || device == "0009" || device == "000b" || device == "000c" ||
           device == "000e";
  // QEMU's switch uses the ids of TI's XIO3130, a Gen1 x1 chip that no GPU server has.
  if (vendor == "104c" && (device == "8232" || device == "8233")) {
    const std::string* speed = attribute(pci, "link_speed");
    const std::string* width = attribute(pci, "link_width");
    return speed != nullptr && speed->starts_with("2.5 GT/s") && width != nullptr && *width == "1";
  }
  return false;
}

bool is_integrated_gpu(std::string_view pci_id) {
  // GB10 and its siblings of the DGX Spark class.
  static constexpr std::array<std::string_view, 3> ids{"10de:2e12", "10de:2e2a", "10de:2e3d"};
  return std::find(ids.begin(), ids.end(), pci_id) != ids.end();
}

void read_facts(Device& device) {
  const NcclElement& own = device.nccl.front();
  device.kind = kind_of(device.nccl, device.kind == DeviceKind::pci_switch);
  if (own.tag == "pci") {
    const std::string* bus_id = attribute(own, "busid");
    device.address = bus_id != nullptr ? parse_address(*bus_id) : std::string();
    const std::string vendor = hex4(own, "vendor");
    const std::string id = hex4(own, "device");
    // Cloud providers write 0xffff for switches that they hide from guests.
    device.pci_id =
        vendor.empty() || id.empty() || vendor == "ffff" ? std::string() : vendor + ":" + id;
    const std::string* speed = attribute(own, "link_speed");
    const std::string* width = attribute(own, "link_width");
    device.link.reset();
    if (speed != nullptr && width != nullptr && !is_virtual_bridge(own) &&
        !is_integrated_gpu(device.pci_id))
      device.link = parse_link(*speed, *width);
  }
  if (device.kind == DeviceKind::nic) read_nic(device);
  if (device.kind == DeviceKind::gpu) {
    const NcclElement* gpu = find(device.nccl, "gpu");
    device.gdr = gpu != nullptr ? flag(*gpu, "gdr") : std::nullopt;
  }
}

std::vector<std::string> numa_nodes_of(const Host& host) {
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < host.devices.size(); ++i) index.emplace(host.devices[i].name, i);
  std::set<std::string_view> nodes;
  for (const NumaNode& numa : host.numa_nodes) nodes.insert(numa.name);
  std::vector<std::string> result(host.devices.size());
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    std::string_view at = host.devices[i].under;
    for (std::size_t steps = 0; !nodes.contains(at) && steps < host.devices.size(); ++steps) {
      const auto parent = index.find(at);
      at = parent != index.end() ? std::string_view(host.devices[parent->second].under)
                                 : std::string_view();
      if (at.empty()) break;
    }
    if (nodes.contains(at)) result[i] = at;
  }
  return result;
}

namespace {

/// Finds devices by the bus ids in NVLink elements.
struct LinkTargets {
  std::map<std::string_view, const Device*> by_address;

  explicit LinkTargets(const Host& host) {
    for (const Device& device : host.devices)
      if ((device.kind == DeviceKind::gpu || device.kind == DeviceKind::nvswitch) &&
          !device.address.empty())
        by_address.emplace(device.address, &device);
  }
  [[nodiscard]] const Device* find(const std::string* bus_id) const {
    const auto found = by_address.find(bus_id != nullptr ? parse_address(*bus_id) : std::string());
    return found != by_address.end() ? found->second : nullptr;
  }
};

/// The name of the far end of a link; "" for an NVSwitch that is not visible; nullopt for a link to
/// a GPU that this system does not have, or to itself as in Azure's files.
std::optional<std::string> far_end(const NcclElement& element, const Device& from,
                                   const std::string& numa, const LinkTargets& targets) {
  const std::string* tclass = attribute(element, "tclass");
  if (element.tag == "c2c" || (tclass != nullptr && *tclass == "0x068001")) return numa;
  const Device* target = targets.find(attribute(element, "target"));
  const bool to_gpu = element.tag == "xgmi" || (tclass != nullptr && tclass->starts_with("0x03"));
  if (to_gpu)
    return target != nullptr && target->kind == DeviceKind::gpu && target != &from
               ? std::optional(target->name)
               : std::nullopt;
  return target != nullptr && target->kind == DeviceKind::nvswitch ? target->name : std::string();
}

/// NVLink's model follows from the GPU's generation; other links have a model of their own, if one
/// exists.
std::string link_model(const NcclElement& element, const Device& gpu) {
  if (element.tag == "c2c") return "nvlink-c2c";
  const NcclElement* own = element.tag == "xgmi" ? find(gpu.nccl, "gpu") : nullptr;
  const std::string gfx = own != nullptr ? gfx_name(*own) : std::string();
  if (gfx == "gfx90a") return "xgmi2";
  return gfx.starts_with("gfx94") ? "xgmi3" : "";
}

}  // namespace

std::vector<NvLink> read_nvlinks(const Host& host) {
  const LinkTargets targets(host);
  const std::vector<std::string> numa_nodes = numa_nodes_of(host);
  std::vector<NvLink> links;
  std::map<std::pair<std::string, std::string>, std::size_t> index_of;
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const Device& device = host.devices[i];
    if (device.kind != DeviceKind::gpu) continue;
    for (const NcclElement& element : device.nccl) {
      const auto count = integer_attribute(element, "count");
      if (!is_gpu_link(element.tag) || !count) continue;
      if (*count < 1 || *count > 64)
        throw InputError(fmt::format("<{}> of {} has count \"{}\", allowed: 1 to 64", element.tag,
                                     device.name, *count));
      const auto to = far_end(element, device, numa_nodes[i], targets);
      if (!to || index_of.contains({*to, device.name}))
        continue;  // the other end may have listed the pair
      const auto [at, is_new] = index_of.emplace(std::pair(device.name, *to), links.size());
      if (is_new) links.push_back({device.name, *to, 0, link_model(element, device), {}});
      int& total = links[at->second].count;
      total = std::min(64, total + static_cast<int>(*count));
    }
  }
  return links;
}

}  // namespace gdr::nccl
