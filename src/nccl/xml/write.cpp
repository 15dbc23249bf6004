#include "src/nccl/xml/write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/common/xml_tree.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/facts.hpp"
#include "src/nccl/xml/identify.hpp"
#include "src/nccl/xml/invent.hpp"

namespace gdr {
namespace nccl {
namespace {

/// The links in the elements, without the fields that elements do not set.
std::vector<NvLink> comparable(std::vector<NvLink> links) {
  for (NvLink& link : links) {
    link.model.clear();
    link.nccl.clear();
  }
  std::sort(links.begin(), links.end(), [](const NvLink& a, const NvLink& b) {
    return std::tie(a.from, a.to) < std::tie(b.from, b.to);
  });
  return links;
}

void update_nets(std::vector<NcclElement>& elements, const Device& device, const Device& was,
                 Inventor& inventor) {
  int ports = 0;
  for (NcclElement& net : elements) {
    if (net.tag != "net") continue;
    ++ports;
    if (device.port_rate != was.port_rate && device.port_rate)
      set_attribute(net, "speed",
                    fmt::format("{:.0f}", device.port_rate->bytes_per_second / 1.25e5));
    if (device.gdr != was.gdr && device.gdr) set_attribute(net, "gdr", *device.gdr ? "1" : "0");
    if (device.rdma_device != was.rdma_device && !device.rdma_device.empty())
      set_attribute(net, "name", device.rdma_device);
  }
  if (device.link_layer != was.link_layer && device.link_layer)
    set_attribute(elements.front(), "class",
                  *device.link_layer == LinkLayer::infiniband ? "0x020700" : "0x020000");
  if (device.ports == was.ports || !device.ports || ports == 0) return;
  for (; ports > *device.ports; --ports) {
    const auto last = std::find_if(elements.rbegin(), elements.rend(),
                                   [](const NcclElement& e) { return e.tag == "net"; });
    elements.erase(std::next(last).base());
  }
  for (; ports < *device.ports; ++ports) {
    const auto last = std::find_if(elements.rbegin(), elements.rend(),
                                   [](const NcclElement& e) { return e.tag == "net"; });
    elements.insert(last.base(), inventor.net(device, ports + 1));
  }
}

/// The stored elements, updated with the typed fields that have changed since.
std::vector<NcclElement> updated(const Device& device, Inventor& inventor) {
  std::vector<NcclElement> elements = device.nccl;
  Device was;
  was.kind = device.kind;
  was.nccl = device.nccl;
  read_facts(was);
  NcclElement& own = elements.front();
  if (device.address != was.address && !device.address.empty())
    set_attribute(own, "busid", device.address);
  if (device.pci_id != was.pci_id && device.pci_id.size() == 9) {
    set_attribute(own, "vendor", "0x" + device.pci_id.substr(0, 4));
    set_attribute(own, "device", "0x" + device.pci_id.substr(5));
  }
  if (device.link != was.link) {
    set_attribute(own, "link_speed", device.link ? link_speed_text(device.link->generation) : "");
    set_attribute(own, "link_width", device.link ? std::to_string(device.link->width) : "0");
  }
  if (device.kind == DeviceKind::nic) update_nets(elements, device, was, inventor);
  for (NcclElement& element : elements)
    if (device.kind == DeviceKind::gpu && element.tag == "gpu" && device.gdr != was.gdr &&
        device.gdr)
      set_attribute(element, "gdr", *device.gdr ? "1" : "0");
  return elements;
}

/// Adds gpu and net elements for devices whose file left them to detection.
void add_detected(std::vector<NcclElement>& elements, const Device& device, Inventor& inventor,
                  std::int64_t& next_rank) {
  if (device.kind == DeviceKind::gpu) {
    if (find(elements, "gpu") == nullptr) elements.push_back(inventor.gpu(device));
    for (NcclElement& element : elements)
      if (element.tag == "gpu" && attribute(element, "rank") == nullptr)
        set_attribute(element, "rank", std::to_string(next_rank));
    ++next_rank;
  }
  if (device.kind == DeviceKind::nic && find(elements, "nic") == nullptr)
    for (NcclElement& element : inventor.nic(device)) elements.push_back(std::move(element));
}

/// Replaces the link elements of all GPUs by those of host.nvlinks.
void write_nvlinks(const Host& host, HostElements& elements, Inventor& inventor) {
  std::map<std::string_view, std::size_t> index;
  for (std::size_t i = 0; i < host.devices.size(); ++i) index.emplace(host.devices[i].name, i);
  for (auto& list : elements.devices)
    std::erase_if(list, [](const NcclElement& element) { return is_gpu_link(element.tag); });
  const auto add = [&](std::size_t gpu, NcclElement link) {
    auto& list = elements.devices[gpu];
    const auto owner = std::find_if(
        list.begin(), list.end(), [](const NcclElement& element) { return element.tag == "gpu"; });
    if (owner == list.end()) return;
    auto place = owner + 1;
    while (place != list.end() && is_gpu_link(place->tag)) ++place;
    list.insert(place, std::move(link));
  };
  for (const NvLink& link : host.nvlinks) {
    const auto from = index.find(link.from);
    if (from == index.end()) continue;
    const std::string count = std::to_string(link.count);
    const auto to = index.find(link.to);
    if (to == index.end() && numa_index(host, link.to)) {
      if (const int bandwidth = inventor.c2c_bandwidth(link); bandwidth > 0)
        add(from->second, {"c2c", {{"bw", std::to_string(bandwidth)}, {"count", count}}});
      else
        add(from->second,
            {"nvlink", {{"target", "fffffff:ffff:ff"}, {"count", count}, {"tclass", "0x068001"}}});
    } else if (to == index.end() || host.devices[to->second].kind == DeviceKind::nvswitch) {
      const std::string target =
          to == index.end() ? "fffffff:ffff:ff" : inventor.bus_id(host.devices[to->second]);
      add(from->second, {"nvlink", {{"target", target}, {"count", count}, {"tclass", "0x068000"}}});
    } else {
      const NcclElement* gpu = find(elements.devices[from->second], "gpu");
      const bool amd = gpu != nullptr && attribute(*gpu, "gcn") != nullptr;
      for (const auto& [near, far] :
           {std::pair(from->second, to->second), std::pair(to->second, from->second)})
        add(near, {amd ? "xgmi" : "nvlink",
                   {{"target", inventor.bus_id(host.devices[far])},
                    {"count", count},
                    {"tclass", amd ? "0x038000" : "0x030200"}}});
    }
  }
}

}  // namespace

HostElements host_elements(const Topology& topology, std::size_t host_index,
                           const ModelLibrary* models, bool complete) {
  const Host& host = topology.hosts.at(host_index);
  Inventor inventor(host, host_index, models);
  const Identifier identifier(models);
  HostElements elements;
  for (const NumaNode& numa : host.numa_nodes) {
    elements.numa_nodes.push_back(numa.nccl.empty() ? inventor.numa_node(numa) : numa.nccl);
    const auto socket = socket_index(host, numa.socket);
    if (numa.nccl.empty() || !socket || host.sockets[*socket].model.empty()) continue;
    NcclElement& cpu = elements.numa_nodes.back().front();
    if (models != nullptr && identifier.cpu_model(cpu) != host.sockets[*socket].model)
      inventor.set_cpu(cpu, host.sockets[*socket].model);
  }
  std::int64_t next_rank = 0;
  for (const Device& device : host.devices) {
    elements.devices.push_back(device.nccl.empty() ? inventor.device(device)
                                                   : updated(device, inventor));
    if (complete && !elements.devices.back().empty())
      add_detected(elements.devices.back(), device, inventor, next_rank);
  }
  if (comparable(read_nvlinks(host)) != comparable(host.nvlinks))
    write_nvlinks(host, elements, inventor);
  return elements;
}

namespace {

/// Builds the tree of a host, without host bridges, as NCCL does.
class TreeWriter {
 public:
  TreeWriter(const Host& host, HostElements elements)
      : host_(host), elements_(std::move(elements)) {
    for (std::size_t i = 0; i < host.devices.size(); ++i)
      children_[host.devices[i].under].push_back(i);
  }

  xml::Element numa(std::size_t index) const {
    return restore(elements_.numa_nodes[index], below(host_.numa_nodes[index].name));
  }

  [[nodiscard]] bool has_amd_gpus() const {
    return std::any_of(elements_.devices.begin(), elements_.devices.end(), [](const auto& list) {
      const NcclElement* gpu = find(list, "gpu");
      return gpu != nullptr && attribute(*gpu, "gcn") != nullptr;
    });
  }

 private:
  [[nodiscard]] std::vector<xml::Element> below(const std::string& parent) const {
    std::vector<xml::Element> result;
    const auto found = children_.find(parent);
    if (found == children_.end()) return result;
    for (const std::size_t child : found->second) {
      std::vector<xml::Element> inside = below(host_.devices[child].name);
      if (host_.devices[child].kind == DeviceKind::host_bridge)
        std::move(inside.begin(), inside.end(), std::back_inserter(result));
      else if (!elements_.devices[child].empty())
        result.push_back(restore(elements_.devices[child], std::move(inside)));
    }
    return result;
  }

  const Host& host_;
  HostElements elements_;
  std::map<std::string_view, std::vector<std::size_t>> children_;
};

/// The part of Topology::nccl that is this host's system element and its other content.
std::vector<NcclElement> system_of(const Topology& topology, std::size_t host) {
  std::vector<std::vector<NcclElement>> systems;
  for (const NcclElement& element : topology.nccl) {
    if (element.tag == "system") systems.emplace_back();
    if (!systems.empty()) systems.back().push_back(element);
  }
  return systems.size() == topology.hosts.size() ? systems[host] : std::vector<NcclElement>();
}

std::string write(const Host& host, HostElements elements, std::vector<NcclElement> system) {
  const TreeWriter tree(host, std::move(elements));
  if (system.empty()) system.push_back({"system", {{"version", tree.has_amd_gpus() ? "2" : "1"}}});
  std::vector<xml::Element> cpus;
  for (std::size_t i = 0; i < host.numa_nodes.size(); ++i) cpus.push_back(tree.numa(i));
  return xml::write(restore(system, std::move(cpus)));
}

}  // namespace

std::string write_xml(const Host& host, HostElements elements) {
  return write(host, std::move(elements), {});
}

}  // namespace nccl

std::string export_nccl_xml(const Topology& topology, std::size_t host,
                            const ModelLibrary* models) {
  return nccl::write(topology.hosts.at(host), nccl::host_elements(topology, host, models, false),
                     nccl::system_of(topology, host));
}

}  // namespace gdr
