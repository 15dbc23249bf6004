#include "src/hardware/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/filtered_graph.hpp>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "src/common/check.hpp"

namespace gdr {
namespace {

struct EdgeProperty {
  std::size_t id = 0;
  HopKind kind = HopKind::pcie;
  VertexId below = 0;  // the end away from the CPU
};

using BoostGraph =
    boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Vertex, EdgeProperty>;
using BoostEdge = boost::graph_traits<BoostGraph>::edge_descriptor;

/// Which hops a search may take.
struct HopFilter {
  const BoostGraph* graph = nullptr;
  unsigned kinds = 0;
  const std::set<VertexId>* not_by_pcie = nullptr;  // devices whose PCIe link carries no data
  bool operator()(const BoostEdge& edge) const {
    const EdgeProperty& property = (*graph)[edge];
    if (((kinds >> static_cast<unsigned>(property.kind)) & 1U) == 0) return false;
    return property.kind != HopKind::pcie || not_by_pcie == nullptr ||
           !not_by_pcie->contains(property.below);
  }
};

constexpr unsigned bit(HopKind kind) { return 1U << static_cast<unsigned>(kind); }

VertexKind vertex_kind(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::host_bridge:
      return VertexKind::host_bridge;
    case DeviceKind::pci_switch:
      return VertexKind::pci_switch;
    case DeviceKind::gpu:
      return VertexKind::gpu;
    case DeviceKind::nic:
      return VertexKind::nic;
    case DeviceKind::nvme:
      return VertexKind::nvme;
    case DeviceKind::nvswitch:
      return VertexKind::nvswitch;
    case DeviceKind::other:
      return VertexKind::other;
  }
  return VertexKind::other;
}

/// Devices of a host in groups that share something: union by index.
class Groups {
 public:
  explicit Groups(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  [[nodiscard]] std::size_t of(std::size_t i) const {
    while (parent_[i] != i) i = parent_[i];
    return i;
  }
  void join(std::size_t a, std::size_t b) {
    const auto [low, high] = std::minmax({of(a), of(b)});
    parent_[high] = low;
  }

 private:
  std::vector<std::size_t> parent_;  // the lowest index of a group is its root
};

/// The bridges that devices without a known place share, by their stated distances: one switch
/// (PIX), several (PXB), one host bridge.
struct SharedBridges {
  Groups pix;
  Groups pxb;
  Groups phb;

  explicit SharedBridges(const Host& host)
      : pix(host.devices.size()), pxb(host.devices.size()), phb(host.devices.size()) {
    for (const StatedDistance& stated : host.distances) {
      const std::size_t a = *device_index(host, stated.from);
      const std::size_t b = *device_index(host, stated.to);
      if (host.devices[a].place_known != false || host.devices[b].place_known != false) continue;
      if (stated.distance <= Distance::pix) pix.join(a, b);
      if (stated.distance <= Distance::pxb) pxb.join(a, b);
      if (stated.distance <= Distance::phb) phb.join(a, b);
    }
  }
};

/// The address of a device without its function number: functions of one device share it.
std::string slot_of(const Device& device) {
  const auto dot = device.address.rfind('.');
  return dot == std::string::npos ? std::string()
                                  : device.under + " " + device.address.substr(0, dot);
}

/// The NUMA node (index in its host) that each device hangs below.
std::vector<std::size_t> numa_of_devices(const Host& host) {
  std::map<std::string_view, std::size_t> named;
  for (std::size_t i = 0; i < host.devices.size(); ++i) named.emplace(host.devices[i].name, i);
  std::vector<std::size_t> found;
  for (const Device& device : host.devices) {
    std::string_view at = device.under;
    std::optional<std::size_t> numa;
    while (!(numa = numa_index(host, at))) {
      const auto parent = named.find(at);
      check(parent != named.end(), "a device outside the tree");
      at = host.devices[parent->second].under;
    }
    found.push_back(*numa);
  }
  return found;
}

}  // namespace

struct Graph::Impl {
  BoostGraph graph;
  std::vector<Edge> edges;
  std::vector<std::vector<VertexId>> sockets;  // by host
  std::vector<std::vector<VertexId>> memories;
  std::vector<std::vector<VertexId>> devices;
  std::vector<std::vector<std::size_t>> numa_nodes;  // of each device, by host
  VertexId fabric = 0;
  bool has_fabric = false;

  VertexId add(Vertex vertex) { return boost::add_vertex(vertex, graph); }

  std::size_t new_edge(Edge edge) {
    edges.push_back(edge);
    return edges.size() - 1;
  }

  void connect(VertexId above, VertexId below, std::size_t edge) {
    boost::add_edge(above, below, EdgeProperty{edge, edges[edge].kind, below}, graph);
  }

  void add_host(const Topology& topology, std::size_t h);
  void add_devices(const Host& host, std::size_t h);
  void add_nvlinks(const Host& host, std::size_t h);
  VertexId unknown_bridges(const SharedBridges& shared, std::size_t h, std::size_t i,
                           VertexId socket);
  /// The last hop of the shortest route to a vertex.
  struct Step {
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::uint32_t before = none;  // none: the vertex cannot be reached, or the search began there
    std::uint32_t edge = 0;
    bool up = false;
  };
  using Tree = std::vector<Step>;  // by vertex
  [[nodiscard]] const Tree& tree(VertexId from, unsigned kinds, bool data) const;
  [[nodiscard]] std::optional<Route> search(VertexId from, VertexId to, unsigned kinds,
                                            bool data = false) const;

  /// One search gives all routes from a vertex, and most vertices are asked for routes to many
  /// others. Searches are therefore kept, so that all pairs of n devices cost n searches. This is
  /// the most steps that are kept, 12 bytes each.
  static constexpr std::size_t tree_steps = std::size_t{8} << 20U;
  mutable std::map<std::tuple<VertexId, unsigned, bool>, Tree> trees;
  mutable std::size_t searches = 0;

  std::set<VertexId> with_c2c;
  std::vector<std::map<std::pair<std::size_t, std::size_t>, Distance>> stated;  // by host
  std::map<std::tuple<std::size_t, int, std::size_t>, VertexId> unknown;  // host, level, group
};

/// The vertex above device `i`, whose place is not known: the innermost of the bridges that it
/// shares with others.
VertexId Graph::Impl::unknown_bridges(const SharedBridges& shared, std::size_t h, std::size_t i,
                                      VertexId socket) {
  const auto vertex = [&](int level, std::size_t group, VertexKind kind, VertexId above,
                          HopKind hop) {
    const auto [at, is_new] = unknown.try_emplace({h, level, group}, VertexId{0});
    if (!is_new) return at->second;
    at->second = add({kind, h, group, false});
    connect(above, at->second, new_edge({hop, h, group, false}));
    return at->second;
  };
  VertexId above =
      vertex(0, shared.phb.of(i), VertexKind::host_bridge, socket, HopKind::root_complex);
  const std::size_t count = devices[h].size();
  const auto members = [&](const Groups& groups) {
    std::size_t found = 0;
    for (std::size_t other = 0; other < count; ++other)
      found += groups.of(other) == groups.of(i) ? 1 : 0;
    return found;
  };
  const std::size_t outer = members(shared.pxb);
  const std::size_t inner = members(shared.pix);
  if (outer > inner)
    above = vertex(1, shared.pxb.of(i), VertexKind::pci_switch, above, HopKind::pcie);
  if (inner > 1) above = vertex(2, shared.pix.of(i), VertexKind::pci_switch, above, HopKind::pcie);
  return above;
}

void Graph::Impl::add_host(const Topology& topology, std::size_t h) {
  const Host& host = topology.hosts[h];
  auto& host_sockets = sockets.emplace_back();
  auto& host_memories = memories.emplace_back();
  for (std::size_t i = 0; i < host.sockets.size(); ++i) {
    host_sockets.push_back(add({VertexKind::socket, h, i}));
    for (std::size_t other = 0; other < i; ++other)
      connect(host_sockets[other], host_sockets[i], new_edge({HopKind::socket_link, h, i}));
  }
  for (std::size_t i = 0; i < host.numa_nodes.size(); ++i) {
    host_memories.push_back(add({VertexKind::memory, h, i}));
    const auto socket = socket_index(host, host.numa_nodes[i].socket);
    check(socket.has_value(), "a NUMA node without its socket");
    connect(host_sockets[*socket], host_memories[i], new_edge({HopKind::memory, h, i}));
  }
  add_devices(host, h);
  add_nvlinks(host, h);
}

void Graph::Impl::add_devices(const Host& host, std::size_t h) {
  auto& host_devices = devices.emplace_back();
  for (std::size_t i = 0; i < host.devices.size(); ++i)
    host_devices.push_back(add({vertex_kind(host.devices[i].kind), h, i}));
  numa_nodes.push_back(numa_of_devices(host));
  std::map<std::string, std::size_t> shared_links;
  const SharedBridges shared_bridges(host);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const Device& device = host.devices[i];
    const auto numa = numa_index(host, device.under);
    const auto socket_vertex = [&] {
      return sockets[h][*socket_index(host, host.numa_nodes[*numa].socket)];
    };
    if (device.kind == DeviceKind::host_bridge) {
      check(numa.has_value(), "a host bridge outside a NUMA node");
      connect(socket_vertex(), host_devices[i], new_edge({HopKind::root_complex, h, i}));
      continue;
    }
    const std::string slot = slot_of(device);
    const auto shared = slot.empty() ? shared_links.end() : shared_links.find(slot);
    VertexId parent = 0;
    if (numa && shared != shared_links.end()) {
      const auto sibling =
          *boost::out_edges(host_devices[edges[shared->second].index], graph).first;
      parent = boost::target(sibling, graph);
    } else if (numa && device.place_known == false) {
      parent = unknown_bridges(shared_bridges, h, i, socket_vertex());
    } else if (numa) {
      parent = add({VertexKind::host_bridge, h, i, false});
      connect(socket_vertex(), parent, new_edge({HopKind::root_complex, h, i}));
    } else {
      const auto index = device_index(host, device.under);
      check(index.has_value(), "a device below nothing");
      parent = host_devices[*index];
    }
    const std::size_t edge =
        shared != shared_links.end() ? shared->second : new_edge({HopKind::pcie, h, i});
    if (!slot.empty()) shared_links.emplace(slot, edge);
    connect(parent, host_devices[i], edge);
  }
}

void Graph::Impl::add_nvlinks(const Host& host, std::size_t h) {
  std::optional<VertexId> hidden_switch;
  for (std::size_t i = 0; i < host.nvlinks.size(); ++i) {
    const NvLink& link = host.nvlinks[i];
    const VertexId from = devices[h][*device_index(host, link.from)];
    VertexId to = 0;
    if (const auto numa = numa_index(host, link.to)) {
      connect(sockets[h][*socket_index(host, host.numa_nodes[*numa].socket)], from,
              new_edge({HopKind::c2c, h, i}));
      with_c2c.insert(from);
      continue;
    } else if (const auto device = device_index(host, link.to)) {
      to = devices[h][*device];
    } else {
      if (!hidden_switch) hidden_switch = add({VertexKind::nvswitch, h, 0, false});
      to = *hidden_switch;
    }
    if (from != to) connect(to, from, new_edge({HopKind::nvlink, h, i}));
  }
}

const Graph::Impl::Tree& Graph::Impl::tree(VertexId from, unsigned kinds, bool data) const {
  const auto [at, is_new] = trees.try_emplace({from, kinds, data});
  if (!is_new) return at->second;
  const std::size_t count = boost::num_vertices(graph);
  if (trees.size() > 1 &&
      trees.size() * count > tree_steps) {  // drop all and start again with this tree
    trees.clear();
    return tree(from, kinds, data);
  }
  ++searches;
  const boost::filtered_graph<BoostGraph, HopFilter> allowed(
      graph, HopFilter{&graph, kinds, data ? &with_c2c : nullptr});
  std::vector<BoostEdge> last(count);
  std::vector<boost::default_color_type> colors(count, boost::white_color);
  boost::breadth_first_search(
      allowed, from,
      boost::visitor(boost::make_bfs_visitor(
                         boost::record_edge_predecessors(last.data(), boost::on_tree_edge())))
          .color_map(colors.data()));
  Tree& steps = at->second;
  steps.resize(count);
  for (VertexId v = 0; v < count; ++v) {
    if (v == from || colors[v] == boost::white_color) continue;
    const EdgeProperty& property = graph[last[v]];
    const VertexId before = last[v].m_source == v ? last[v].m_target : last[v].m_source;
    steps[v] = {static_cast<std::uint32_t>(before), static_cast<std::uint32_t>(property.id),
                property.below == before};
  }
  return steps;
}

std::optional<Route> Graph::Impl::search(VertexId from, VertexId to, unsigned kinds,
                                         bool data) const {
  if (from == to) return Route{};
  const Tree& steps = tree(from, kinds, data);
  if (steps[to].before == Step::none) return std::nullopt;
  Route route;
  for (VertexId at = to; at != from; at = steps[at].before) {
    const Step& step = steps[at];
    route.push_back({edges[step.edge].kind, step.before, at, step.edge, step.up});
  }
  std::reverse(route.begin(), route.end());
  return route;
}

Graph::Graph(const Topology& topology) : topology_(&topology), impl_(std::make_unique<Impl>()) {
  for (const Host& host : topology.hosts) {
    auto& stated = impl_->stated.emplace_back();
    for (const StatedDistance& one : host.distances)
      stated.emplace(std::minmax(*device_index(host, one.from), *device_index(host, one.to)),
                     one.distance);
  }
  for (std::size_t h = 0; h < topology.hosts.size(); ++h) impl_->add_host(topology, h);
  if (!topology.fabric) return;
  impl_->has_fabric = true;
  impl_->fabric = impl_->add({VertexKind::fabric, 0, 0});
  for (std::size_t h = 0; h < topology.hosts.size(); ++h)
    for (std::size_t i = 0; i < topology.hosts[h].devices.size(); ++i)
      if (topology.hosts[h].devices[i].kind == DeviceKind::nic)
        impl_->connect(impl_->fabric, impl_->devices[h][i], impl_->new_edge({HopKind::wire, h, i}));
}

Graph::~Graph() = default;
Graph::Graph(Graph&&) noexcept = default;

VertexId Graph::device(DeviceId id) const { return impl_->devices.at(id.host).at(id.device); }
VertexId Graph::memory(std::size_t host, std::size_t numa) const {
  return impl_->memories.at(host).at(numa);
}
VertexId Graph::socket(std::size_t host, std::size_t index) const {
  return impl_->sockets.at(host).at(index);
}
const Vertex& Graph::vertex(VertexId id) const { return impl_->graph[id]; }
const Edge& Graph::edge(std::size_t id) const { return impl_->edges.at(id); }

const Device* Graph::device_at(VertexId id) const {
  const Vertex& v = vertex(id);
  const bool device = v.kind != VertexKind::socket && v.kind != VertexKind::memory &&
                      v.kind != VertexKind::fabric && v.known;
  return device ? &topology_->hosts.at(v.host).devices.at(v.index) : nullptr;
}

std::string Graph::label(VertexId id) const {
  const Vertex& v = vertex(id);
  if (v.kind == VertexKind::fabric) return "fabric";
  const Host& host = topology_->hosts.at(v.host);
  if (v.kind == VertexKind::socket) return host.name + "/" + host.sockets.at(v.index).name;
  if (v.kind == VertexKind::memory) return host.name + "/" + host.numa_nodes.at(v.index).name;
  if (v.kind == VertexKind::nvswitch && !v.known) return host.name + "/nvswitch";
  if (v.kind == VertexKind::pci_switch && !v.known)
    return host.name + "/switch-of-" + host.devices.at(v.index).name;
  if (!v.known) return host.name + "/port-of-" + host.devices.at(v.index).name;
  return host.name + "/" + host.devices.at(v.index).name;
}

std::optional<Distance> Graph::stated_distance(DeviceId a, DeviceId b) const {
  if (a.host != b.host) return std::nullopt;
  const auto& stated = impl_->stated.at(a.host);
  const auto found = stated.find(std::minmax(a.device, b.device));
  return found != stated.end() ? std::optional(found->second) : std::nullopt;
}

std::size_t Graph::numa_of(DeviceId id) const {
  return impl_->numa_nodes.at(id.host).at(id.device);
}

std::size_t Graph::searches() const { return impl_->searches; }

std::size_t Graph::socket_of_numa(std::size_t host, std::size_t numa) const {
  const Host& h = topology_->hosts.at(host);
  return *socket_index(h, h.numa_nodes.at(numa).socket);
}

std::optional<Route> Graph::local_route(VertexId from, VertexId to) const {
  return impl_->search(from, to,
                       bit(HopKind::pcie) | bit(HopKind::root_complex) | bit(HopKind::memory) |
                           bit(HopKind::socket_link));
}

bool Graph::has_c2c(VertexId gpu) const { return impl_->with_c2c.contains(gpu); }

std::optional<Route> Graph::data_route(VertexId from, VertexId to) const {
  return impl_->search(from, to,
                       bit(HopKind::pcie) | bit(HopKind::root_complex) | bit(HopKind::memory) |
                           bit(HopKind::socket_link) | bit(HopKind::c2c),
                       true);
}

std::optional<Route> Graph::nvlink_route(VertexId from, VertexId to) const {
  return impl_->search(from, to, bit(HopKind::nvlink));
}

std::optional<Route> Graph::wire_route(VertexId from, VertexId to) const {
  return impl_->search(from, to, bit(HopKind::wire));
}

Route Graph::route_to_host_bridge(VertexId from) const {
  const Vertex& v = vertex(from);
  const auto all = local_route(from, socket(v.host, 0));
  check(all.has_value(), "a device that is not joined to a socket");
  Route route;
  for (const Hop& hop : *all) {
    if (hop.kind != HopKind::pcie) break;
    route.push_back(hop);
  }
  return route;
}

Route reversed(const Route& route) {
  Route back;
  for (auto hop = route.rbegin(); hop != route.rend(); ++hop)
    back.push_back({hop->kind, hop->to, hop->from, hop->edge, !hop->up});
  return back;
}

}  // namespace gdr
