#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/import/observed_host.hpp"

namespace gdr::observed {
namespace {

std::vector<NumaNode> nodes_of(const Machine& machine) {
  std::vector<NumaNode> nodes = machine.numa_nodes;
  const auto add = [&](int id) {
    const auto same = [&](const NumaNode& node) { return node.id == id; };
    if (id >= 0 && id < 4096 && std::none_of(nodes.begin(), nodes.end(), same))
      nodes.push_back({id, {}});
  };
  for (const Function& function : machine.functions) add(function.numa_node.value_or(-1));
  if (nodes.empty() && machine.processor.numa_nodes == 1) add(0);
  std::sort(nodes.begin(), nodes.end(),
            [](const NumaNode& a, const NumaNode& b) { return a.id < b.id; });
  return nodes;
}

/// The socket of each node, if it is known or follows from the counts: one node, two nodes, or
/// AMD's eight.
std::vector<int> sockets_of(const Machine& machine, const std::vector<NumaNode>& nodes) {
  std::vector<int> sockets;
  if (std::all_of(nodes.begin(), nodes.end(),
                  [](const NumaNode& node) { return node.package.has_value(); })) {
    std::set<int> packages;
    for (const NumaNode& node : nodes) packages.insert(*node.package);
    for (const NumaNode& node : nodes)
      sockets.push_back(
          static_cast<int>(std::distance(packages.begin(), packages.find(*node.package))));
    return sockets;
  }
  const int count = static_cast<int>(nodes.size());
  const auto packages = machine.processor.packages;
  const bool all_nodes =
      machine.processor.numa_nodes.value_or(static_cast<int>(machine.numa_nodes.size())) == count;
  int per_socket = 0;
  if (count <= 2 && !packages) per_socket = 1;
  if (packages && *packages > 0 && all_nodes && count % *packages == 0)
    per_socket = count / *packages;
  if (!packages && count == 8 && machine.processor.vendor == "AuthenticAMD") per_socket = 4;
  if (per_socket == 0) return {};
  for (int i = 0; i < count; ++i) sockets.push_back(i / per_socket);
  return sockets;
}

}  // namespace

void add_numa_nodes(const Machine& machine, const nccl::Identifier& identifier, Host& host) {
  const Processor& processor = machine.processor;
  const std::string model =
      processor.family && processor.model
          ? identifier.cpu_model(processor.vendor, *processor.family, *processor.model)
          : std::string();
  const std::vector<NumaNode> nodes = nodes_of(machine);
  const std::vector<int> sockets = sockets_of(machine, nodes);
  if (!nodes.empty() && sockets.empty()) host.sockets_known = false;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::string socket =
        fmt::format("cpu{}", sockets.empty() ? static_cast<int>(i) : sockets[i]);
    if (!socket_index(host, socket)) host.sockets.push_back({socket, model});
    host.numa_nodes.push_back({fmt::format("numa{}", nodes[i].id), socket, {}, {}});
  }
  if (host.sockets.empty()) host.sockets.push_back({"cpu0", model});
}

std::string unknown_numa(Host& host) {
  const std::string name = "numa-unknown";
  if (!numa_index(host, name))
    host.numa_nodes.push_back({name, host.sockets.front().name, false, {}});
  return name;
}

}  // namespace gdr::observed
