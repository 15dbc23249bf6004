#include "src/datapath/data_path.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"

// Names and ends of transfers, and the paths between two ends.

namespace gdr {
namespace {

constexpr std::array<std::string_view, 10> path_names{
    "gdr", "staged", "tcp", "rdma", "p2p", "nvlink", "copy", "dma", "gds", "load-store"};
constexpr std::array<std::string_view, 3> operation_names{"write", "read", "send"};
constexpr std::array<std::string_view, 3> initiator_names{"cpu", "gpu", "proxy"};
constexpr std::array<std::string_view, 8> mover_names{"copy-engine", "nic-read",    "wire",
                                                      "nic-write",   "socket-copy", "cpu-copy",
                                                      "device-dma",  "gpu-thread"};

template <typename Enum, std::size_t N>
Enum parse_word(std::string_view text, const std::array<std::string_view, N>& names,
                std::string_view what) {
  for (std::size_t i = 0; i < N; ++i)
    if (names.at(i) == text) return static_cast<Enum>(i);
  throw InputError(
      fmt::format("\"{}\" is no {}; there are: {}", text, what, fmt::join(names, ", ")));
}

}  // namespace

std::string_view to_string(PathKind path) { return path_names.at(static_cast<std::size_t>(path)); }
PathKind parse_path(std::string_view text) {
  return parse_word<PathKind>(text, path_names, "path");
}
std::string_view to_string(Operation operation) {
  return operation_names.at(static_cast<std::size_t>(operation));
}
Operation parse_operation(std::string_view text) {
  return parse_word<Operation>(text, operation_names, "operation");
}
std::string_view to_string(Initiator initiator) {
  return initiator_names.at(static_cast<std::size_t>(initiator));
}
Initiator parse_initiator(std::string_view text) {
  return parse_word<Initiator>(text, initiator_names, "initiator");
}
std::string_view to_string(Mover mover) { return mover_names.at(static_cast<std::size_t>(mover)); }

std::vector<PathKind> paths_between(const Graph& graph, const Transfer& transfer) {
  const Topology& topology = graph.topology();
  const DeviceKind from = get(topology, transfer.from).kind;
  const DeviceKind to = get(topology, transfer.to).kind;
  if (transfer.host_end != HostEnd::none && transfer.from.host != transfer.to.host)
    return {PathKind::gdr};
  if (transfer.host_end != HostEnd::none) {
    if (from == DeviceKind::gpu) return {PathKind::copy, PathKind::load_store};
    if (from == DeviceKind::nic || from == DeviceKind::nvme) return {PathKind::dma};
    return {};
  }
  if (from == DeviceKind::nvme || to == DeviceKind::nvme) {
    if (transfer.from.host != transfer.to.host ||
        (from != DeviceKind::gpu && to != DeviceKind::gpu))
      return {};
    return {PathKind::staged, PathKind::gds};
  }
  if (transfer.memory == MemoryKind::host) return {PathKind::tcp, PathKind::rdma};
  if (transfer.from.host == transfer.to.host && nvlink_count(graph, transfer.from, transfer.to) > 0)
    return {PathKind::staged, PathKind::p2p, PathKind::nvlink, PathKind::load_store};
  if (transfer.from.host == transfer.to.host)
    return {PathKind::staged, PathKind::p2p, PathKind::load_store};
  return {PathKind::tcp, PathKind::staged, PathKind::gdr};
}

std::vector<PathKind> usual_paths(const Graph& graph, const Transfer& transfer) {
  std::vector<PathKind> paths = paths_between(graph, transfer);
  if (paths.size() > 1) std::erase(paths, PathKind::load_store);
  return paths;
}

namespace {

std::string end_label(const Graph& graph, const Transfer& transfer, DeviceId device, HostEnd end) {
  if (transfer.host_end != end) return label(graph.topology(), device);
  const std::size_t numa = transfer.numa.value_or(graph.numa_of(device));
  const Host& host = graph.topology().hosts.at(device.host);
  return fmt::format("{}/{}", host.name, host.numa_nodes.at(numa).name);
}

}  // namespace

std::string from_label(const Graph& graph, const Transfer& transfer) {
  return end_label(graph, transfer, transfer.from, HostEnd::from);
}
std::string to_label(const Graph& graph, const Transfer& transfer) {
  return end_label(graph, transfer, transfer.to, HostEnd::to);
}

End find_end(const Topology& topology, std::string_view text) {
  const std::size_t slash = text.find('/');
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) {
    const Host& host = topology.hosts[h];
    if (slash == std::string_view::npos ? topology.hosts.size() > 1
                                        : host.name != text.substr(0, slash))
      continue;
    const auto numa =
        numa_index(host, slash == std::string_view::npos ? text : text.substr(slash + 1));
    if (numa) return {{h, 0}, numa};
  }
  return {find_device(topology, text), std::nullopt};
}

namespace {

/// The NUMA node above a device, by the file.
std::string numa_above(const Host& host, const Device& device) {
  std::string above = device.under;
  for (std::size_t i = 0; i < host.devices.size(); ++i)
    for (const Device& other : host.devices)
      if (other.name == above) above = other.under;
  return above;
}

/// The NIC that stands for host memory between hosts: one near the NUMA node, else any.
std::optional<DeviceId> nic_near(const Topology& topology, const End& memory) {
  const Host& host = topology.hosts[memory.device.host];
  std::optional<DeviceId> any;
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    if (host.devices[i].kind != DeviceKind::nic) continue;
    const DeviceId nic{memory.device.host, i};
    if (numa_above(host, host.devices[i]) == host.numa_nodes[*memory.numa].name) return nic;
    if (!any) any = nic;
  }
  return any;
}

}  // namespace

void set_ends(const Topology& topology, const End& from, const End& to, Transfer& transfer) {
  if (from.numa && to.numa) throw InputError("both ends are host memory; one must be a device");
  transfer.host_end = from.numa ? HostEnd::from : to.numa ? HostEnd::to : HostEnd::none;
  transfer.from = from.numa ? to.device : from.device;
  transfer.to = to.numa ? from.device : to.device;
  transfer.numa = from.numa ? from.numa : to.numa;
  if (from.device.host == to.device.host || transfer.host_end == HostEnd::none) return;
  const End& memory = from.numa ? from : to;
  const auto nic = nic_near(topology, memory);
  if (!nic)
    throw InputError(
        fmt::format("host {} has no NIC, and another host can reach its memory only through one",
                    topology.hosts[memory.device.host].name));
  (from.numa ? transfer.from : transfer.to) = *nic;
}

}  // namespace gdr
