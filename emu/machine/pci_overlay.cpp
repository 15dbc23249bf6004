#include "emu/machine/pci_overlay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

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
/// ACS capabilities of switches and root ports: all but egress control.
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

/// Collects the registers of one function.
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

/// The header of the model that the file names; nullptr without one.
const ModelHeader* header_of(const Hardware& hardware, DeviceId id) {
  if (hardware.model_basis(id) != Basis::stated) return nullptr;
  switch (hardware.device(id).kind) {
    case DeviceKind::gpu:
      return &hardware.gpu(id).header;
    case DeviceKind::nic:
      return &hardware.nic(id).header;
    case DeviceKind::nvme:
      return &hardware.nvme(id).header;
    case DeviceKind::pci_switch:
      return &hardware.pci_switch(id).header;
    case DeviceKind::host_bridge:
    case DeviceKind::nvswitch:
    case DeviceKind::other:
      break;
  }
  return nullptr;
}

std::string id_of(const Hardware& hardware, DeviceId id) {
  if (!hardware.device(id).pci_id.empty()) return hardware.device(id).pci_id;
  const ModelHeader* header = header_of(hardware, id);
  return header != nullptr && !header->pci_ids.empty() ? header->pci_ids.front() : "";
}

/// The value if the file or a model that it names states it; nullopt for an assumption.
template <typename T>
std::optional<T> told(const Fact<T>& fact) {
  const bool is_told = fact.basis == Basis::stated || fact.basis == Basis::model;
  return is_told ? std::optional(fact.value) : std::nullopt;
}

/// The class code of three bytes; 0 where QEMU's function has the right one, or the class is
/// unknown.
std::uint32_t class_of(const Hardware& hardware, DeviceId id) {
  switch (hardware.device(id).kind) {
    case DeviceKind::gpu:
      return hardware.is_amd_gpu(id) ? 0x120000
                                     : 0x030200;  // processing accelerator, 3D controller
    case DeviceKind::nic:
      return hardware.runs_ethernet(id) ? 0 : 0x020700;
    case DeviceKind::nvswitch:
      return 0x068000;  // "other bridge"
    default:
      return 0;
  }
}

void set_sizes(Registers& function, const Hardware& hardware, DeviceId id) {
  const Device& device = hardware.device(id);
  std::uint32_t mask = 0;
  std::uint32_t value = 0;
  const auto field = [&](unsigned shift, unsigned bits, std::uint32_t content) {
    mask |= bits << shift;
    value |= content << shift;
  };
  if (const auto now = told(hardware.payload_setting(id))) {
    function.set('p', device_capabilities, 0x7,
                 size_code(std::max(*now, hardware.max_payload(id).value)));
    field(max_payload_shift, 0x7, size_code(*now));
  }
  const bool reads = device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic ||
                     device.kind == DeviceKind::nvme;
  const auto request = reads ? told(hardware.max_read_request(hardware.graph().device(id)))
                             : device.max_read_request;
  if (request) field(max_read_request_shift, 0x7, size_code(*request));
  // This bit is on after a reset.
  if (device.relaxed_ordering || device.kind == DeviceKind::nic)
    field(relaxed_ordering_bit, 0x1, device.relaxed_ordering.value_or(true) ? 1 : 0);
  if (mask != 0) function.set('p', device_control, mask, value, mask);
}

void set_acs(Registers& port, const Hardware& hardware, DeviceId id) {
  const std::optional<Acs>& acs = hardware.device(id).acs;
  if (!acs || (acs->bits == 0 && !hardware.port_can_acs(id))) return;
  const std::uint32_t can = usual_acs | acs->bits;
  port.set('a', acs_register, 0xffffffff, can | static_cast<std::uint32_t>(acs->bits) << 16U,
           can << 16U);
}

void set_links(Registers& port, Registers& function, const Hardware& hardware, DeviceId id) {
  const Device& device = hardware.device(id);
  // Where software shows a link that is not real, the guest shows it, too.
  const std::optional<PcieLink> now = hardware.shows_virtual_link(id)
                                          ? device.link
                                          : told(hardware.link(id)).value_or(std::nullopt);
  if (!now) return;
  const auto at_least = [&](PcieLink link) {
    return PcieLink{std::max(link.generation, now->generation), std::max(link.width, now->width)};
  };
  // If the file states no capability, the slot can do no more than it runs at: the verdict assumes
  // no more either.
  const PcieLink both = at_least(device.link_capability.value_or(*now));
  port.set_links(*now, both);
  function.set_links(*now, at_least(hardware.named_model_link(id).value_or(both)));
}

void add_device(std::string& text, const Hardware& hardware, DeviceId id, PciPlace place) {
  const Host& host = hardware.host_of(id);
  const Device& device = hardware.device(id);
  Registers function(text, 'd', place);
  if (const std::string pci_id = id_of(hardware, id); !pci_id.empty()) function.set_id(pci_id);
  if (const std::uint32_t code = class_of(hardware, id); code != 0)
    function.set('c', class_register, 0xffffff00, code << 8U);
  set_sizes(function, hardware, id);
  if (device.ats)
    function.set('t', ats_register, 0xffffffff, *device.ats ? ats_enabled : 0, ats_enabled);
  if (device.kind == DeviceKind::gpu)
    if (const auto size = told(hardware.bar_size(id))) function.set_bar_size(gpu_memory_bar, *size);

  if (place % 8 != 0) return;  // the port is that of function 0
  Registers port(text, 'p', place);
  // All ports of a switch have the switch's ID.
  if (const auto above = device_index(host, device.under);
      above && host.devices[*above].kind == DeviceKind::pci_switch)
    if (const std::string pci_id = id_of(hardware, {id.host, *above}); !pci_id.empty())
      port.set_id(pci_id);
  set_acs(port, hardware, id);
  set_links(port, function, hardware, id);
}

const CpuModel* named_cpu(const Socket& socket, const ModelLibrary& models) {
  return names_model(socket.model) ? &models.cpu(socket.model) : nullptr;
}

}  // namespace

std::string pci_overlay(const Hardware& hardware, std::size_t host_index, const PcieTree& tree) {
  const Host& host = hardware.topology().hosts.at(host_index);
  std::string text;
  for (const RootBus& root : tree.roots) {
    if (root.first_port == 0) continue;
    std::string id;
    if (const auto bridge = device_index(host, root.bridge)) id = host.devices[*bridge].pci_id;
    const std::size_t socket = hardware.graph().socket_of_numa(host_index, root.numa);
    if (id.empty() && names_model(host.sockets.at(socket).model)) {
      const CpuModel& cpu = hardware.cpu(hardware.graph().socket(host_index, socket));
      if (!cpu.host_bridge_ids.empty()) id = cpu.host_bridge_ids.front();
    }
    if (id.empty()) continue;
    Registers(text, 'p', root.first_port).set_id(id);
    // Its other ports get the ID, too: with QEMU's ID their links would count as virtual.
    for (std::size_t device = 0; device < host.devices.size(); ++device) {
      const PciPlace place = tree.places[device];
      const bool another = place != 0 && place % 8 == 0 && place != root.first_port;
      if (another && !root.bridge.empty() && host.devices[device].under == root.bridge)
        Registers(text, 'p', place).set_id(id);
    }
  }
  for (std::size_t device = 0; device < host.devices.size(); ++device)
    if (tree.places[device] != 0)
      add_device(text, hardware, {host_index, device}, tree.places[device]);
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
