#include "src/verdict/pair_context.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/verdict/kernel_p2pdma.hpp"

namespace gdr {
namespace {

PairRoute route_of(const PairContext& pair) {
  if (pair.kind == PairKind::gpu_gpu && pair.nvlinks > 0) return PairRoute::nvlink;
  if (pair.routes.direct.empty()) return PairRoute::none;
  if (const auto stated = pair.graph().stated_distance(pair.from, pair.to)) {
    if (*stated <= Distance::pxb) return PairRoute::pci_switch;
    return *stated == Distance::sys ? PairRoute::socket_link : PairRoute::host_bridge;
  }
  if (pair.routes.parts_at_switch) return PairRoute::pci_switch;
  const bool sockets = std::any_of(pair.routes.direct.begin(), pair.routes.direct.end(),
                                   [](const Hop& hop) { return hop.kind == HopKind::socket_link; });
  return sockets ? PairRoute::socket_link : PairRoute::host_bridge;
}

/// True when the file may not show the pair's real route. A guest's switch that is not QEMU's is
/// believed; devices that meet only at the CPU of a guest may really meet elsewhere.
bool hidden(const PairContext& pair) {
  if (pair.distance == Distance::unknown) return true;
  if (pair.graph().stated_distance(pair.from, pair.to)) return false;
  const auto is_virtual = [&](VertexId id) {
    return pair.hardware->is_virtual_switch({pair.from.host, pair.graph().vertex(id).index});
  };
  if (pair.routes.parts_at_switch && pair.graph().device_at(pair.routes.turn) != nullptr)
    return is_virtual(pair.routes.turn);
  if (pair.host().virtual_machine.value_or(false)) return true;
  return std::any_of(pair.routes.direct.begin(), pair.routes.direct.end(), [&](const Hop& hop) {
    return pair.graph().device_at(hop.to) != nullptr && is_virtual(hop.to);
  });
}

/// The link's potential, not its present speed: a worse slot must not make the rest of the route
/// look better.
Bandwidth link_could_carry(const PairContext& pair, DeviceId id) {
  const std::optional<PcieLink> now = pair.hardware->link(id).value;
  const std::optional<PcieLink> best = pair.hardware->trainable_link(id);
  const auto rate = [&](PcieLink link) {
    return pair.hardware->payload_rate(link, pair.max_payload);
  };
  const PcieLink link = now.value_or(best.value_or(PcieLink{4, 16}));
  return best ? std::max(rate(link), rate(*best)) : rate(link);
}

}  // namespace

bool PairContext::through_root_complex() const {
  if (over_nvlink()) return false;
  const Fact<bool> redirected = routes.redirected();
  return !routes.parts_at_switch || (redirected.value && redirected.known());
}

PairContext make_pair_context(const Hardware& hardware, PairKind kind, DeviceId from, DeviceId to) {
  const Graph& graph = hardware.graph();
  PairContext pair;
  pair.hardware = &hardware;
  pair.kind = kind;
  pair.from = from;
  pair.to = to;
  pair.initiator = kind == PairKind::gpu_nic ? to : from;
  pair.target = kind == PairKind::gpu_nic ? from : to;
  pair.distance = pcie_distance(graph, from, to);
  pair.nvlinks = kind == PairKind::gpu_gpu ? nvlink_count(graph, from, to) : 0;
  pair.routes = hardware.peer_routes(graph.device(pair.initiator), graph.device(pair.target));
  pair.route = route_of(pair);
  pair.kernel = kernel_p2pdma(hardware, pair.routes, pair.initiator, pair.target);
  if (const auto cpu = hardware.cpu_above(from); cpu.known() && hardware.cpu_above(to).known())
    pair.cpu = cpu.value;
  pair.tree_hidden = !pair.over_nvlink() && hidden(pair);
  pair.max_payload = hardware.max_payload(pair.routes.direct);
  pair.could_carry =
      std::min(link_could_carry(pair, pair.initiator), link_could_carry(pair, pair.target));
  if (kind == PairKind::gpu_nic)
    pair.could_carry = std::min(pair.could_carry, hardware.network_rate(pair.initiator));
  return pair;
}

std::optional<Bandwidth> ForwardLimit::least() const {
  if (!read || !write) return read ? read : write;
  return std::min(*read, *write);
}

namespace {

/// The CPU whose limits hold for data through the root complex: that of the host bridge where the
/// data leaves it.
const CpuModel& forwarding_cpu(const PairContext& pair, const Route& data) {
  const auto last = std::find_if(data.rbegin(), data.rend(), [&](const Hop& hop) {
    return pair.graph().vertex(hop.from).kind == VertexKind::host_bridge;
  });
  return last != data.rend() ? pair.hardware->cpu(last->from) : *pair.cpu;
}

}  // namespace

ForwardLimit forward_limit(const PairContext& pair) {
  // What ACS or the IOMMU sends up from a switch comes back down the same root port and crosses
  // nothing else.
  if (pair.cpu == nullptr || pair.tree_hidden || !pair.through_root_complex() ||
      pair.routes.parts_at_switch)
    return {};
  // Over NVLink or C2C the CPU's fabric delivers to the GPU, not a root port.
  if (pair.graph().has_c2c(pair.graph().device(pair.target)) ||
      pair.graph().has_c2c(pair.graph().device(pair.initiator)))
    return {};
  const bool remote = pair.route == PairRoute::socket_link;
  const auto value = [](const std::optional<Parameter<Bandwidth>>& parameter) {
    return parameter ? std::optional(parameter->value) : std::nullopt;
  };
  const CpuModel& reads = forwarding_cpu(pair, pair.routes.completion);
  const CpuModel& writes = forwarding_cpu(pair, pair.routes.request);
  return {value(remote ? reads.p2p_remote_read_bandwidth : reads.p2p_read_bandwidth),
          value(remote ? writes.p2p_remote_write_bandwidth : writes.p2p_write_bandwidth)};
}

std::vector<DeviceId> links_on_route(const PairContext& pair) {
  std::vector<DeviceId> devices;
  const auto add = [&](const Route& route) {
    for (const Hop& hop : route) {
      if (hop.kind != HopKind::pcie) continue;
      const VertexId below = hop.up ? hop.from : hop.to;
      if (pair.graph().device_at(below) == nullptr)
        continue;  // a bridge that the file only implies
      const DeviceId id{pair.from.host, pair.graph().vertex(below).index};
      if (std::find(devices.begin(), devices.end(), id) == devices.end()) devices.push_back(id);
    }
  };
  add(pair.routes.redirected().known() ? pair.routes.request : pair.routes.direct);
  add(pair.routes.completion);
  return devices;
}

std::string gbps(Bandwidth bandwidth) {
  return fmt::format("{:.1f} GB/s", bandwidth.gigabytes_per_second());
}

}  // namespace gdr
