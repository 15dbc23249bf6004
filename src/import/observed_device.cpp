#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "src/import/observed_host.hpp"
#include "src/import/pci_names.hpp"
#include "src/nccl/xml/facts.hpp"

namespace gdr::observed {
namespace {

/// GPUs inside a processor report links that do not exist.
bool is_integrated(const Function& function) {
  return function.port_type == PortType::integrated || nccl::is_integrated_gpu(function.pci_id) ||
         function.text.find("GB10") != std::string::npos;
}

bool is_qemu_bridge(const Function& function) {
  if (function.pci_id.starts_with("1b36:")) return true;
  const bool xio = function.pci_id == "104c:8232" || function.pci_id == "104c:8233";
  return xio && (!function.link || *function.link == PcieLink{1, 1});
}

/// An idle GPU's reduced link speed looks like a link that is stuck; only a listing under load
/// shows the difference.
void read_gpu_link(const Function& function, std::optional<PcieLink> capability, Device& device,
                   std::vector<Remark>& remarks) {
  device.link = function.link;
  const bool slower =
      function.link && capability && function.link->generation < capability->generation;
  if (!slower) return;
  const PcieLink wide{capability->generation, function.link->width};
  device.link = function.link->width < capability->width ? std::optional(wide) : std::nullopt;
  remarks.push_back(
      {"link-speed-snapshot", Severity::warning, function.address,
       fmt::format("The GPU's link ran at {} in the listing and supports {}. Idle GPUs lower the "
                   "speed, so this is harmless unless it persists under load; then the link "
                   "carries {:.1f} GB/s at most.",
                   to_string(*function.link), to_string(*capability),
                   gigatransfers_per_lane(function.link->generation) * function.link->width *
                       (function.link->generation < 3 ? 0.8 : 128.0 / 130.0) / 8),
       "Check again while a copy runs (lspci -vvv, line LnkSta, or nvidia-smi -q -d PCIE)."});
}

void read_link(const Machine& machine, const Function& function, const Function* port,
               Device& device, std::vector<Remark>& remarks) {
  const bool guest = machine.virtual_machine.value_or(false);
  if (device.kind == DeviceKind::gpu && is_integrated(function)) return;
  if (device.kind == DeviceKind::pci_switch && (guest || is_qemu_bridge(function))) return;
  std::optional<PcieLink> capability = function.link_capability;
  const bool real_port = port != nullptr && !guest && !is_qemu_bridge(*port);
  if (real_port && port->link_capability)
    capability =
        capability ? common_link(*capability, *port->link_capability) : port->link_capability;
  if (device.kind == DeviceKind::gpu) read_gpu_link(function, capability, device, remarks);
  else device.link = function.link;
  if (!capability || (device.link && common_link(*device.link, *capability) != *device.link))
    return;
  if (device.link != capability) device.link_capability = capability;
}

/// The BAR that maps device memory is the largest prefetchable one; NVIDIA uses region 1.
void read_bars(const Function& function, Device& device, std::vector<Remark>& remarks) {
  if (std::any_of(function.bars.begin(), function.bars.end(),
                  [](const Bar& bar) { return !bar.assigned; })) {
    remarks.push_back(
        {"gpu-bar-unassigned", Severity::error, function.address,
         "The system assigned no address to a memory BAR of the GPU, so the driver cannot use it.",
         "Enable above-4G decoding in the BIOS; in a virtual machine give the guest enough "
         "physical address bits and a 64-bit prefetchable window that holds the BARs of all "
         "GPUs."});
    return;
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 42U;  // what a topology file accepts
  for (const Bar& bar : function.bars)
    if (bar.size && std::has_single_bit(bar.size->count) && bar.size->count >= 1U << 20U &&
        bar.size->count <= most)
      device.bar_size = std::max(device.bar_size.value_or(Bytes{}), *bar.size);
}

/// virtio has no RDMA: an RDMA device on a virtio function is SoftRoCE, as in guests of gdr
/// emulate.
bool is_paravirtual_nic(const Function& function) {
  const bool virtio =
      function.pci_id.starts_with("1af4:") ||
      (function.pci_id.empty() && function.text.find("irtio network") != std::string::npos);
  return virtio && function.rdma_device.empty();
}

void read_nic(const Function& function, Device& device) {
  const bool name_fits =
      !function.rdma_device.empty() &&
      std::all_of(function.rdma_device.begin(), function.rdma_device.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.';
      });
  if (name_fits) device.rdma_device = function.rdma_device;
  if (function.rdma_ports && *function.rdma_ports >= 1 && *function.rdma_ports <= 16)
    device.ports = function.rdma_ports;
  device.port_rate = function.port_rate;
  device.link_layer = function.link_layer;
  if (!device.link_layer && function.pci_class) {
    if (*function.pci_class >> 8U == 0x0207) device.link_layer = LinkLayer::infiniband;
    if (*function.pci_class >> 8U == 0x0200) device.link_layer = LinkLayer::ethernet;
  }
  if (device.model.empty() && device.rdma_device.empty() &&
      is_plain_ethernet(function.pci_id, function.text))
    device.model = "generic-ethernet";
}

}  // namespace

std::optional<DeviceKind> kind_of(const Function& function, const nccl::Identifier& identifier) {
  const auto claimed = identifier.kind_of(function.pci_id);
  if (claimed && claimed != DeviceKind::pci_switch) return claimed;
  const std::string vendor =
      function.pci_id.empty() ? vendor_of_name(function.text) : function.pci_id.substr(0, 4);
  const bool accelerators = vendor == "10de" || vendor == "1002";
  if (function.pci_class) {
    const unsigned kind = *function.pci_class >> 8U;
    if (kind == 0x0302 || (kind == 0x0300 && vendor == "10de")) return DeviceKind::gpu;
    if (kind == 0x0380 || kind == 0x1200) return accelerators ? DeviceKind::gpu : DeviceKind::other;
    if (kind >> 8U == 0x02)
      return is_paravirtual_nic(function) ? std::nullopt : std::optional(DeviceKind::nic);
    if (kind == 0x0108) return DeviceKind::nvme;
    if (kind == 0x0680 && vendor == "10de") return DeviceKind::nvswitch;
    return std::nullopt;
  }
  const auto by_name = kind_of_name(function.text);
  if (by_name == DeviceKind::nic && is_paravirtual_nic(function)) return std::nullopt;
  return by_name == DeviceKind::other ? std::nullopt : by_name;
}

void read_device(const Machine& machine, const Function& function, const Function* port,
                 Device& device, std::vector<Remark>& remarks) {
  device.address = function.address;
  device.pci_id = function.pci_id.starts_with("ffff:") ? std::string() : function.pci_id;
  if (port != nullptr && port->acs) device.acs = port->acs;
  if (port != nullptr && port->no_acs) device.acs = Acs{};
  device.max_payload = function.max_payload;
  device.max_read_request = function.max_read_request;
  device.relaxed_ordering = function.relaxed_ordering;
  device.ats = function.ats;
  read_link(machine, function, port, device, remarks);
  if (device.kind == DeviceKind::gpu) read_bars(function, device, remarks);
  if (device.kind == DeviceKind::nic) read_nic(function, device);
  const bool made_up = is_qemu_bridge(function) ||
                       (machine.virtual_machine.value_or(false) && device.pci_id.empty());
  if (device.kind == DeviceKind::pci_switch && made_up) device.model = "virtual-bridge";
}

}  // namespace gdr::observed
