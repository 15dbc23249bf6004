#include "src/hardware/device_models.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/hardware/pcie.hpp"

namespace gdr {
namespace {

std::string model_or_generic(const std::string& model) { return model.empty() ? "generic" : model; }

/// The fastest link the device's own model trains; nullopt for a device without a model.
std::optional<PcieLink> model_link(const ModelLibrary& models, const Device& device) {
  switch (device.kind) {
    case DeviceKind::gpu:
      return gpu_model(models, device).header.pcie;
    case DeviceKind::nic:
      return nic_model(models, device).header.pcie;
    case DeviceKind::nvme:
      return nvme_model(models, device).header.pcie;
    case DeviceKind::pci_switch:
      return switch_model(models, device).header.pcie;
    default:
      return std::nullopt;
  }
}

/// What the port above the device can do, as far as models say.
std::optional<PcieLink> port_link(const Graph& graph, const ModelLibrary& models, DeviceId id) {
  const Host& host = graph.topology().hosts.at(id.host);
  const auto parent = device_index(host, host.devices.at(id.device).under);
  if (parent && host.devices[*parent].kind == DeviceKind::pci_switch)
    return model_link(models, host.devices[*parent]);
  const CpuModel* cpu = cpu_of(graph, models, id);
  return cpu != nullptr ? std::optional(PcieLink{cpu->pcie_generation, 16}) : std::nullopt;
}

bool is_named(const std::string& model) { return !model.empty() && model != "generic"; }

/// The same, without guesses: nullopt below a switch that is virtual or not named.
std::optional<PcieLink> known_port_link(const Graph& graph, const ModelLibrary& models,
                                        DeviceId id) {
  const Host& host = graph.topology().hosts.at(id.host);
  const auto parent = device_index(host, host.devices.at(id.device).under);
  if (parent && host.devices[*parent].kind == DeviceKind::pci_switch) {
    const Device& above = host.devices[*parent];
    if (!is_named(above.model) || is_virtual_switch(models, host, above)) return std::nullopt;
  }
  return port_link(graph, models, id);
}

}  // namespace

const GpuModel& gpu_model(const ModelLibrary& models, const Device& gpu) {
  return models.gpu(model_or_generic(gpu.model));
}
const NicModel& nic_model(const ModelLibrary& models, const Device& nic) {
  return models.nic(model_or_generic(nic.model));
}
const SwitchModel& switch_model(const ModelLibrary& models, const Device& pci_switch) {
  return models.pci_switch(model_or_generic(pci_switch.model));
}

const NvmeModel& nvme_model(const ModelLibrary& models, const Device& drive) {
  if (!drive.model.empty()) return models.nvme(drive.model);
  return models.nvme(
      fmt::format("gen{}", drive.link ? std::clamp(drive.link->generation, 3, 5) : 4));
}

const CpuModel* cpu_of(const Graph& graph, const ModelLibrary& models, DeviceId device) {
  const Host& host = graph.topology().hosts.at(device.host);
  const std::string& model =
      host.sockets.at(graph.socket_of_numa(device.host, graph.numa_of(device))).model;
  return model.empty() || model == "generic" ? nullptr : &models.cpu(model);
}

bool is_amd_gpu(const ModelLibrary& models, const Device& gpu) {
  return gpu_model(models, gpu).amd_gfx.has_value() || gpu.pci_id.starts_with("1002:");
}

std::string collective_library(const ModelLibrary& models, const Device& gpu) {
  return is_amd_gpu(models, gpu) ? "RCCL" : "NCCL";
}

bool has_c2c(const Host& host, const Device& gpu) {
  return std::any_of(host.nvlinks.begin(), host.nvlinks.end(), [&](const NvLink& link) {
    return link.from == gpu.name && numa_index(host, link.to).has_value();
  });
}

bool is_virtual_switch(const ModelLibrary& models, const Host& host, const Device& device) {
  if (device.kind != DeviceKind::pci_switch) return false;
  const bool qemu_link =
      device.link && device.link->generation == 1;  // QEMU's bridges say 2.5 GT/s x1
  return switch_model(models, device).is_virtual.value ||
         (host.virtual_machine.value_or(false) && device.model.empty() && qemu_link);
}

Bytes bar_window(const ModelLibrary& models, const Device& gpu) {
  const Bytes bar = gpu.bar_size.value_or(gpu_model(models, gpu).bar_size.value);
  if (is_amd_gpu(models, gpu)) return bar;
  return {bar.count - std::min(bar.count, driver_bar_share.count)};
}

Bytes max_payload_of(const ModelLibrary& models, const Device& device) {
  if (device.max_payload) return *device.max_payload;
  switch (device.kind) {
    case DeviceKind::gpu:
      return gpu_model(models, device).max_payload.value;
    case DeviceKind::nic:
      return nic_model(models, device).max_payload.value;
    case DeviceKind::nvme:
      return nvme_model(models, device).max_payload.value;
    case DeviceKind::pci_switch:
      return switch_model(models, device).max_payload.value;
    default:
      return Bytes{256};
  }
}

Bandwidth network_rate(const ModelLibrary& models, const Device& nic) {
  return nic.port_rate.value_or(nic_model(models, nic).port_rate.value) * nic.ports.value_or(1);
}

bool runs_ethernet(const Topology& topology, const ModelLibrary& models, const Device& nic) {
  if (nic.link_layer) return *nic.link_layer == LinkLayer::ethernet;
  if (nic_model(models, nic).link_layers.value == "ethernet") return true;
  return topology.fabric && models.fabric(topology.fabric->model).link_layer.value == "ethernet" &&
         nic_model(models, nic).link_layers.value != "infiniband";
}

LinkFact link_of(const Graph& graph, const ModelLibrary& models, DeviceId id) {
  const Host& host = graph.topology().hosts.at(id.host);
  const Device& device = host.devices.at(id.device);
  const bool virtual_switch = is_virtual_switch(models, host, device);
  const bool gen1 = device.link && device.link->generation == 1;
  const bool endpoint_of_software =
      gen1 && (host.virtual_machine.value_or(false) ||
               (device.kind == DeviceKind::gpu && has_c2c(host, device)));
  const std::optional<PcieLink> own = model_link(models, device);
  if (virtual_switch || endpoint_of_software) return {own, !device.link.has_value()};
  if (device.link) return {device.link, true};
  if (device.link_capability) return {device.link_capability, true};
  const auto port = port_link(graph, models, id);
  return {own && port ? common_link(*own, *port) : own, true};
}

std::optional<PcieLink> named_model_link(const ModelLibrary& models, const Device& device) {
  return is_named(device.model) ? model_link(models, device) : std::nullopt;
}

std::optional<PcieLink> trainable_link(const Graph& graph, const ModelLibrary& models,
                                       DeviceId id) {
  const Device& device = get(graph.topology(), id);
  const LinkFact fact = link_of(graph, models, id);
  if (!fact.believed) return fact.link;
  if (device.link_capability) return device.link_capability;
  const std::optional<PcieLink> own = named_model_link(models, device);
  // A GPU that is joined to its CPU by NVLink has the PCIe lanes that its board gives it, not those
  // of a slot.
  if (!own || has_c2c(graph.topology().hosts.at(id.host), device)) return std::nullopt;
  const std::optional<PcieLink> port = known_port_link(graph, models, id);
  if (port) return common_link(*own, *port);
  return PcieLink{fact.link ? std::min(fact.link->generation, own->generation) : own->generation,
                  own->width};
}

std::optional<PcieLink> fastest_slot(const ModelLibrary& models, const Host& host) {
  PcieLink slot{1, 16};
  for (const Socket& socket : host.sockets) {
    if (!is_named(socket.model)) return std::nullopt;
    slot.generation = std::max(slot.generation, models.cpu(socket.model).pcie_generation);
  }
  return slot;
}

Bandwidth payload_rate(const ModelLibrary& models, PcieLink link, Bytes max_payload) {
  const PcieModel& generation = models.pcie(link.generation);
  return tlp_bandwidth(generation, link.width) *
         (1 / write_traffic(generation, max_payload, max_payload).wire_bytes_per_byte);
}

}  // namespace gdr
