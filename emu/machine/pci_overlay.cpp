#include "emu/machine/pci_overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "src/hardware/device_models.hpp"

namespace gdr::emu {
namespace {

// Offsets of 32-bit registers and their bits: PCI Express Base Specification, linux/pci_regs.h.
constexpr unsigned id_register = 0x00, class_register = 0x08;
constexpr unsigned device_capabilities = 0x04, device_control = 0x08, link_capabilities = 0x0c,
                   link_control = 0x10, link_capabilities_2 = 0x2c;
constexpr unsigned acs_register = 0x04, ats_register = 0x04;
constexpr unsigned relaxed_ordering_bit = 4;
constexpr unsigned max_payload_shift = 5, max_read_request_shift = 12;
constexpr unsigned width_shift = 4, status_shift = 16;
constexpr std::uint32_t ats_enabled = 1U << 31U;
constexpr unsigned gpu_memory_bar = 2;  // of ivshmem
/// What switches and root ports with ACS can do: all but egress control.
constexpr std::uint16_t usual_acs = Acs::source_validation | Acs::translation_blocking |
                                    Acs::request_redirect | Acs::completion_redirect |
                                    Acs::upstream_forwarding | Acs::direct_translated;

/// 128 B is 0, 256 B is 1...
unsigned size_code(Bytes size) {
  const unsigned log = static_cast<unsigned>(std::bit_width(
                           std::bit_floor(std::clamp<std::uint64_t>(size.count, 128, 4096)))) -
                       1;
  return log - 7;
}

std::uint32_t link_fields(PcieLink link) {
  return static_cast<std::uint32_t>(link.generation) | static_cast<std::uint32_t>(link.width)
                                                           << width_shift;
}

/// Registers of one function.
class Registers {
 public:
  Registers(std::string& text, char kind, PciPlace place)
      : text_(text), where_(fmt::format("{}{:x}", kind, place)) {}

  void set(char space, unsigned offset, std::uint32_t mask, std::uint32_t value,
           std::uint32_t writable = 0) {
    text_ += fmt::format("#pci {} {} {:x} {:x} {:x} {:x}\n", where_, space, offset, mask, value,
                         writable);
  }
  void set_id(std::string_view vendor_device) {
    const auto number = [](std::string_view text) {
      return static_cast<std::uint32_t>(std::stoul(std::string(text), nullptr, 16));
    };
    const auto colon = vendor_device.find(':');
    set('c', id_register, 0xffffffff,
        number(vendor_device.substr(colon + 1)) << 16U | number(vendor_device.substr(0, colon)));
  }
  void set_links(PcieLink now, PcieLink most) {
    constexpr std::uint32_t fields = 0x3ff;
    set('p', link_capabilities, fields, link_fields(most));
    set('p', link_control, fields << status_shift, link_fields(now) << status_shift);
    set('p', link_capabilities_2, 0xfe, (1U << (static_cast<unsigned>(most.generation) + 1)) - 2);
  }
  void set_bar_size(unsigned bar, Bytes size) {
    text_ += fmt::format("#pci {} b {:x} {:x}\n", where_, bar, size.count);
  }

 private:
  std::string& text_;
  std::string where_;
};

const ModelHeader* header_of(const ModelLibrary& models, const Device& device) {
  if (device.model.empty() || device.model == "generic") return nullptr;
  switch (device.kind) {
    case DeviceKind::gpu:
      return &models.gpu(device.model).header;
    case DeviceKind::nic:
      return &models.nic(device.model).header;
    case DeviceKind::nvme:
      return &models.nvme(device.model).header;
    case DeviceKind::pci_switch:
      return &models.pci_switch(device.model).header;
    case DeviceKind::host_bridge:
    case DeviceKind::nvswitch:
    case DeviceKind::other:
      break;
  }
  return nullptr;
}

std::string id_of(const ModelLibrary& models, const Device& device) {
  if (!device.pci_id.empty()) return device.pci_id;
  const ModelHeader* header = header_of(models, device);
  return header != nullptr && !header->pci_ids.empty() ? header->pci_ids.front() : "";
}

/// The class code of three bytes; 0 where QEMU's function has the right one, or it is not known.
std::uint32_t class_of(const ModelLibrary& models, const Device& device, bool ethernet) {
  switch (device.kind) {
    case DeviceKind::gpu:
      return is_amd_gpu(models, device) ? 0x120000
                                        : 0x030200;  // processing accelerator, 3D controller
    case DeviceKind::nic:
      return ethernet ? 0 : 0x020700;
    case DeviceKind::nvswitch:
      return 0x068000;  // "other bridge"
    default:
      return 0;
  }
}

std::optional<Bytes> max_read_request_of(const ModelLibrary& models, const Device& device) {
  if (device.max_read_request) return device.max_read_request;
  if (header_of(models, device) == nullptr) return std::nullopt;
  switch (device.kind) {
    case DeviceKind::gpu:
      return gpu_model(models, device).max_read_request.value;
    case DeviceKind::nic:
      return nic_model(models, device).max_read_request.value;
    case DeviceKind::nvme:
      return nvme_model(models, device).max_read_request.value;
    default:
      return std::nullopt;
  }
}

/// What the system sets where the file does not say: what the file says of another function below
/// the same root port, else the largest that all of them take.
Bytes common_payload(const Host& host, const ModelLibrary& models, const Device& device) {
  const auto top = [&](const Device* at) {
    for (auto above = device_index(host, at->under);
         above && host.devices[*above].kind == DeviceKind::pci_switch;
         above = device_index(host, at->under))
      at = &host.devices[*above];
    return at;
  };
  std::optional<Bytes> stated;
  Bytes taken = max_payload_of(models, device);
  for (const Device& other : host.devices) {
    if (top(&other) != top(&device)) continue;
    if (other.max_payload)
      stated = std::min(*other.max_payload, stated.value_or(*other.max_payload));
    else if (header_of(models, other) != nullptr)
      taken = std::min(taken, max_payload_of(models, other));
  }
  return stated.value_or(taken);
}

void set_sizes(Registers& function, const ModelLibrary& models, const Host& host,
               const Device& device) {
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
  const auto field = [&](unsigned shift, unsigned bits, std::uint32_t content) {
    mask |= bits << shift;
    value |= content << shift;
  };
  if (device.max_payload || header_of(models, device) != nullptr) {
    const Bytes now = device.max_payload.value_or(common_payload(host, models, device));
    function.set('p', device_capabilities, 0x7,
                 size_code(std::max(now, max_payload_of(models, device))));
    field(max_payload_shift, 0x7, size_code(now));
  }
  if (const auto size = max_read_request_of(models, device))
    field(max_read_request_shift, 0x7, size_code(*size));
  // On after a reset.
  if (device.relaxed_ordering || device.kind == DeviceKind::nic)
    field(relaxed_ordering_bit, 0x1, device.relaxed_ordering.value_or(true) ? 1 : 0);
  if (mask != 0) function.set('p', device_control, mask, value, mask);
}

void set_acs(Registers& port, const ModelLibrary& models, const Host& host, const Device& device) {
  if (!device.acs) return;
  const auto above = device_index(host, device.under);
  const bool below_switch = above && host.devices[*above].kind == DeviceKind::pci_switch;
  if (below_switch && !switch_model(models, host.devices[*above]).acs.value &&
      device.acs->bits == 0)
    return;
  const std::uint32_t can = usual_acs | device.acs->bits;
  port.set('a', acs_register, 0xffffffff, can | static_cast<std::uint32_t>(device.acs->bits) << 16U,
           can << 16U);
}

void add_device(std::string& text, const Graph& graph, DeviceId id, PciPlace place,
                const ModelLibrary& models) {
  const Topology& topology = graph.topology();
  const Host& host = topology.hosts.at(id.host);
  const Device& device = get(topology, id);
  Registers function(text, 'd', place);
  if (const std::string pci_id = id_of(models, device); !pci_id.empty()) function.set_id(pci_id);
  const bool ethernet = device.kind == DeviceKind::nic && runs_ethernet(topology, models, device);
  if (const std::uint32_t code = class_of(models, device, ethernet); code != 0)
    function.set('c', class_register, 0xffffff00, code << 8U);
  set_sizes(function, models, host, device);
  if (device.ats)
    function.set('t', ats_register, 0xffffffff, *device.ats ? ats_enabled : 0, ats_enabled);
  if (device.kind == DeviceKind::gpu && (device.bar_size || header_of(models, device) != nullptr))
    function.set_bar_size(gpu_memory_bar,
                          device.bar_size.value_or(gpu_model(models, device).bar_size.value));

  if (place % 8 != 0) return;  // the port is that of function 0
  Registers port(text, 'p', place);
  // All ports of a switch have its ID.
  if (const auto above = device_index(host, device.under);
      above && host.devices[*above].kind == DeviceKind::pci_switch)
    if (const std::string pci_id = id_of(models, host.devices[*above]); !pci_id.empty())
      port.set_id(pci_id);
  set_acs(port, models, host, device);
  const auto named = named_model_link(models, device);
  const std::optional<PcieLink> now = device.link              ? device.link
                                      : device.link_capability ? device.link_capability
                                                               : named;
  if (!now) return;
  const auto at_least = [&](PcieLink link) {
    return PcieLink{std::max(link.generation, now->generation), std::max(link.width, now->width)};
  };
  // Where the file does not say, the slot is no better than it runs: the verdict on the file does
  // not count on more.
  const PcieLink both = at_least(device.link_capability.value_or(*now));
  port.set_links(*now, both);
  function.set_links(*now, at_least(named.value_or(both)));
}

const CpuModel* named_cpu(const Socket& socket, const ModelLibrary& models) {
  return socket.model.empty() || socket.model == "generic" ? nullptr : &models.cpu(socket.model);
}

}  // namespace

std::string pci_overlay(const Graph& graph, std::size_t host_index, const PcieTree& tree,
                        const ModelLibrary& models) {
  const Host& host = graph.topology().hosts.at(host_index);
  std::string text;
  for (const RootBus& root : tree.roots) {
    if (root.first_port == 0) continue;
    std::string id;
    if (const auto bridge = device_index(host, root.bridge)) id = host.devices[*bridge].pci_id;
    const CpuModel* cpu =
        named_cpu(host.sockets.at(graph.socket_of_numa(host_index, root.numa)), models);
    if (id.empty() && cpu != nullptr && !cpu->host_bridge_ids.empty())
      id = cpu->host_bridge_ids.front();
    if (id.empty()) continue;
    Registers(text, 'p', root.first_port).set_id(id);
    // Its other ports, too: with QEMU's ID nobody would believe their links.
    for (std::size_t device = 0; device < host.devices.size(); ++device) {
      const PciPlace place = tree.places[device];
      const bool another = place != 0 && place % 8 == 0 && place != root.first_port;
      if (another && !root.bridge.empty() && host.devices[device].under == root.bridge)
        Registers(text, 'p', place).set_id(id);
    }
  }
  for (std::size_t device = 0; device < host.devices.size(); ++device)
    if (tree.places[device] != 0)
      add_device(text, graph, {host_index, device}, tree.places[device], models);
  return text;
}

std::string processor_identity(const Host& host, const ModelLibrary& models) {
  const CpuModel* cpu = host.sockets.empty() ? nullptr : named_cpu(host.sockets.front(), models);
  if (cpu == nullptr || cpu->cpuid.empty() || cpu->cpuid.front().models.empty()) return "";
  const CpuIdentity& identity = cpu->cpuid.front();
  constexpr std::size_t longest_name = 47;  // of CPUID
  std::string name = cpu->header.title.substr(0, longest_name);
  std::replace(name.begin(), name.end(), ',', ' ');
  return fmt::format("vendor={},family={},model={},stepping=1,model-id={}", identity.vendor,
                     identity.family, identity.models.front(), name);
}

std::string iommu_parameters(const Host& host, const ModelLibrary& models) {
  if (!host.software.iommu) return "";
  const CpuModel* cpu = host.sockets.empty() ? nullptr : named_cpu(host.sockets.front(), models);
  const bool amd =
      cpu != nullptr && !cpu->cpuid.empty() && cpu->cpuid.front().vendor == "AuthenticAMD";
  const std::string on = amd ? "amd_iommu=on" : "intel_iommu=on";
  switch (*host.software.iommu) {
    case IommuMode::off:
      return amd ? "amd_iommu=off" : "intel_iommu=off";
    case IommuMode::passthrough:
      return on + " iommu=pt";
    case IommuMode::translate:
      return on;
  }
  return "";
}

}  // namespace gdr::emu
