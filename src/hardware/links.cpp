#include <algorithm>

#include "src/hardware/hardware.hpp"

// PCIe links: speed, payload, and the ACS bits of the ports above.

namespace gdr {

/// The switch above a device, if there is one.
std::optional<DeviceId> Hardware::switch_above(DeviceId id) const {
  const Host& host = host_of(id);
  const auto parent = device_index(host, host.devices.at(id.device).under);
  if (!parent || host.devices[*parent].kind != DeviceKind::pci_switch) return std::nullopt;
  return DeviceId{id.host, *parent};
}

/// The fastest link that the device's own model trains; nullopt for a device without a model.
std::optional<PcieLink> Hardware::model_link(DeviceId id) const {
  switch (device(id).kind) {
    case DeviceKind::gpu:
      return gpu(id).header.pcie;
    case DeviceKind::nic:
      return nic(id).header.pcie;
    case DeviceKind::nvme:
      return nvme(id).header.pcie;
    case DeviceKind::pci_switch:
      return pci_switch(id).header.pcie;
    default:
      return std::nullopt;
  }
}

/// What the port above the device trains; nullopt below a switch that is virtual or not named, or a
/// CPU that is not named.
std::optional<PcieLink> Hardware::port_link(DeviceId id) const {
  if (const auto above = switch_above(id)) {
    if (!names_model(device(*above).model) || is_virtual_switch(*above)) return std::nullopt;
    return model_link(*above);
  }
  const auto cpu = cpu_above(id);
  return cpu.known() ? std::optional(PcieLink{cpu.value->pcie_generation, 16}) : std::nullopt;
}

Fact<std::optional<PcieLink>> Hardware::find_link(DeviceId id) const {
  const Device& device = this->device(id);
  if (is_virtual_switch(id)) return {std::nullopt, Basis::model};
  if (!shows_virtual_link(id)) {
    if (device.link) return {device.link, Basis::stated};
    if (device.link_capability) return {device.link_capability, Basis::stated};
  }
  const auto own = model_link(id);
  if (!own) return {std::nullopt, Basis::assumed};
  const auto port = port_link(id);
  return {port ? common_link(*own, *port) : *own,
          names_model(device.model) ? Basis::model : Basis::assumed};
}

Fact<std::optional<PcieLink>> Hardware::link(DeviceId id) const {
  if (const auto known = links_.find(id); known != links_.end()) return known->second;
  // Functions of one card share a link: a stated one, else that of the first function.
  std::optional<Fact<std::optional<PcieLink>>> found;
  const Host& host = host_of(id);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const DeviceId other{id.host, i};
    if (other != id && !of_one_card(host.devices[i], device(id))) continue;
    const auto one = find_link(other);
    if (!found || (found->basis != Basis::stated && one.basis == Basis::stated)) found = one;
  }
  return links_[id] = *found;
}

Fact<std::optional<PcieLink>> Hardware::link(std::size_t edge) const {
  const Edge& e = graph_->edge(edge);
  if (!e.known) return {std::nullopt, Basis::unknown};
  return link(DeviceId{e.host, e.index});
}

std::optional<PcieLink> Hardware::named_model_link(DeviceId id) const {
  return names_model(device(id).model) ? model_link(id) : std::nullopt;
}

std::optional<PcieLink> Hardware::trainable_link(DeviceId id) const {
  const auto now = link(id).value;
  if (shows_virtual_link(id)) return now;
  if (device(id).link_capability) return device(id).link_capability;
  const std::optional<PcieLink> own = named_model_link(id);
  // A GPU that NVLink joins to its CPU has the PCIe lanes of its board, not those of a slot.
  if (!own || graph_->has_c2c(graph_->device(id))) return std::nullopt;
  if (const auto port = port_link(id)) return common_link(*own, *port);
  return PcieLink{now ? std::min(now->generation, own->generation) : own->generation, own->width};
}

std::optional<PcieLink> Hardware::fastest_slot(std::size_t host) const {
  PcieLink slot{1, 16};
  const auto& sockets = topology().hosts.at(host).sockets;
  for (std::size_t i = 0; i < sockets.size(); ++i) {
    if (!names_model(sockets[i].model)) return std::nullopt;
    slot.generation = std::max(slot.generation, cpu(graph_->socket(host, i)).pcie_generation);
  }
  return slot;
}

std::optional<Bandwidth> Hardware::link_bandwidth(const Hop& hop) const {
  const auto link = this->link(hop.edge).value;
  if (!link) return std::nullopt;
  const Bandwidth all = tlp_bandwidth(pcie(link->generation), link->width);
  Bandwidth bandwidth = all;
  for (const VertexId end : {hop.from, hop.to})
    if (graph_->vertex(end).kind == VertexKind::pci_switch)
      if (const auto& percent = pci_switch(end).port_bandwidth_percent)
        bandwidth = std::min(bandwidth, all * (static_cast<double>(percent->value) / 100));
  return bandwidth;
}

Bandwidth Hardware::payload_rate(PcieLink link, Bytes max_payload) const {
  const PcieModel& generation = pcie(link.generation);
  return tlp_bandwidth(generation, link.width) *
         (1 / write_traffic(generation, max_payload, max_payload).wire_bytes_per_byte);
}

const PcieModel& Hardware::layout(const Route& route) const {
  constexpr int usual = 4;
  for (const Hop& hop : route)
    if (hop.kind == HopKind::pcie)
      if (const auto link = this->link(hop.edge).value) return pcie(link->generation);
  return pcie(usual);
}

bool Hardware::port_can_acs(DeviceId id) const {
  const auto above = switch_above(id);
  return !above || pci_switch(*above).acs.value;
}

Fact<Acs> Hardware::port_acs(DeviceId id) const {
  if (device(id).acs) return stated(*device(id).acs);
  return {Acs{}, port_can_acs(id) ? Basis::unknown : Basis::model};
}

}  // namespace gdr
