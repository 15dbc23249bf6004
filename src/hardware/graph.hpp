#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/topology/topology.hpp"

namespace gdr {

enum class VertexKind {
  socket,
  memory,
  host_bridge,
  pci_switch,
  gpu,
  nic,
  nvme,
  nvswitch,
  other,
  fabric
};

/// A place in the graph. `index` counts sockets, NUMA nodes or devices of the host, by kind. A
/// device right below a NUMA node gets a host bridge of its own with `known` false, since the
/// topology does not say which bridge it really is. Devices with stated distances share bridges and
/// switches with `known` false.
struct Vertex {
  VertexKind kind = VertexKind::other;
  std::size_t host = 0;
  std::size_t index = 0;
  bool known = true;
};
using VertexId = std::size_t;

enum class HopKind {
  pcie,          ///< a device or switch and what it hangs below
  root_complex,  ///< a host bridge and the fabric of its socket
  memory,        ///< a socket's fabric and the memory of one of its NUMA nodes
  socket_link,   ///< two sockets of a host
  nvlink,        ///< NVLink or xGMI between GPUs and NVSwitches
  c2c,           ///< NVLink or C2C between a GPU and its CPU
  wire,          ///< a NIC and the network
};

/// One hop in the direction of travel. `edge` identifies the link in both directions; `up` is
/// towards the CPU.
struct Hop {
  HopKind kind = HopKind::pcie;
  VertexId from = 0;
  VertexId to = 0;
  std::size_t edge = 0;
  bool up = false;
  bool operator==(const Hop&) const = default;
};
using Route = std::vector<Hop>;

/// An edge of the graph: its ends and its link.
struct Edge {
  HopKind kind = HopKind::pcie;
  std::size_t host = 0;
  /// pcie: the device below the link (the first function, when several share it); nvlink: index in
  /// host.nvlinks; wire: the NIC.
  std::size_t index = 0;
  bool known = true;  ///< pcie: false above a bridge that only stated distances imply: what its
                      ///< link is, the topology does not say
};

/// A topology as a graph: trees of PCIe below sockets, socket links, NVLinks, one network.
/// Immutable except for the routes that it caches, so not for several threads at once.
class Graph {
 public:
  explicit Graph(const Topology& topology);
  ~Graph();
  Graph(Graph&&) noexcept;

  [[nodiscard]] const Topology& topology() const { return *topology_; }
  [[nodiscard]] VertexId device(DeviceId id) const;
  [[nodiscard]] VertexId memory(std::size_t host, std::size_t numa) const;
  [[nodiscard]] VertexId socket(std::size_t host, std::size_t index) const;
  [[nodiscard]] const Vertex& vertex(VertexId id) const;
  [[nodiscard]] const Edge& edge(std::size_t id) const;
  /// "h0/gpu0", "h0/numa0", "h0/cpu0", "fabric"; a host bridge that is not known:
  /// "h0/port-of-gpu0".
  [[nodiscard]] std::string label(VertexId id) const;
  /// The device at a vertex, if it is one of the file.
  [[nodiscard]] const Device* device_at(VertexId id) const;

  /// The distance of two devices of one host in Host::distances.
  [[nodiscard]] std::optional<Distance> stated_distance(DeviceId a, DeviceId b) const;

  /// The NUMA node (index in its host) that a device hangs below.
  [[nodiscard]] std::size_t numa_of(DeviceId id) const;
  [[nodiscard]] std::size_t socket_of_numa(std::size_t host, std::size_t numa) const;

  /// The shortest route inside one host over PCIe, host bridges, sockets and memory; empty when
  /// from == to, nullopt between hosts.
  [[nodiscard]] std::optional<Route> local_route(VertexId from, VertexId to) const;
  /// True when NVLink or C2C joins a GPU to its CPU: its data then takes that link, and PCIe serves
  /// configuration only.
  [[nodiscard]] bool has_c2c(VertexId gpu) const;
  /// The route of data inside one host: local_route, but over C2C where a GPU has it.
  [[nodiscard]] std::optional<Route> data_route(VertexId from, VertexId to) const;
  /// The shortest route over NVLink alone; nullopt when there is none.
  [[nodiscard]] std::optional<Route> nvlink_route(VertexId from, VertexId to) const;
  /// NIC to NIC over the network; nullopt when there is no fabric.
  [[nodiscard]] std::optional<Route> wire_route(VertexId from, VertexId to) const;
  /// From a PCIe vertex up to its host bridge.
  [[nodiscard]] Route route_to_host_bridge(VertexId from) const;

  /// The number of searches so far, for tests of cost.
  [[nodiscard]] std::size_t searches() const;

 private:
  struct Impl;
  const Topology* topology_;
  std::unique_ptr<Impl> impl_;
};

/// The same route in the opposite direction.
Route reversed(const Route& route);

}  // namespace gdr
