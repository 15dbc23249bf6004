#include "src/topology/topology_json.hpp"

namespace gdr {
namespace {

json::Value nccl_to_json(const std::vector<NcclElement>& elements) {
  json::Array list;
  for (const NcclElement& element : elements) {
    json::Object attributes;
    for (const auto& [name, value] : element.attributes) attributes.emplace_back(name, value);
    list.emplace_back(json::Object{{"tag", element.tag}, {"attributes", std::move(attributes)}});
  }
  return list;
}

/// Sets a member only if the value is known.
class Members {
 public:
  void put(std::string_view name, const std::string& text) {
    if (!text.empty()) value_.set(name, text);
  }
  void put(std::string_view name, const std::optional<Bytes>& bytes) {
    if (bytes) value_.set(name, to_string(*bytes));
  }
  void put(std::string_view name, const std::optional<Bandwidth>& bandwidth) {
    if (bandwidth) value_.set(name, to_string(*bandwidth));
  }
  void put(std::string_view name, const std::optional<PcieLink>& link) {
    if (link) value_.set(name, to_string(*link));
  }
  void put(std::string_view name, const std::optional<bool>& fact) {
    if (fact) value_.set(name, *fact);
  }
  void put(std::string_view name, const std::optional<int>& number) {
    if (number) value_.set(name, *number);
  }
  void put(std::string_view name, json::Value value) { value_.set(name, std::move(value)); }
  void put_nccl(const std::vector<NcclElement>& elements) {
    if (!elements.empty()) value_.set("nccl", nccl_to_json(elements));
  }
  json::Value take() { return std::move(value_); }

 private:
  json::Value value_ = json::Object{};
};

json::Value device_to_json(const Device& device) {
  Members members;
  members.put("name", device.name);
  members.put("kind", std::string(to_string(device.kind)));
  members.put("model", device.model);
  members.put("under", device.under);
  members.put("place_known", device.place_known);
  members.put("link", device.link);
  members.put("link_capability", device.link_capability);
  if (device.acs) members.put("acs", to_json(*device.acs));
  members.put("max_payload", device.max_payload);
  members.put("max_read_request", device.max_read_request);
  members.put("relaxed_ordering", device.relaxed_ordering);
  members.put("ats", device.ats);
  members.put("address", device.address);
  members.put("pci_id", device.pci_id);
  members.put("bar_size", device.bar_size);
  members.put("gdr", device.gdr);
  members.put("ports", device.ports);
  members.put("port_rate", device.port_rate);
  if (device.link_layer) members.put("link_layer", std::string(to_string(*device.link_layer)));
  members.put("rdma_device", device.rdma_device);
  members.put("gid_type", device.gid_type);
  members.put("lossless", device.lossless);
  members.put_nccl(device.nccl);
  return members.take();
}

json::Value software_to_json(const Software& software) {
  Members members;
  members.put("kernel", software.kernel);
  if (software.iommu) members.put("iommu", std::string(to_string(*software.iommu)));
  if (software.iommu_page_size)
    members.put("iommu_page_size", to_string(*software.iommu_page_size));
  members.put("nvidia_peermem", software.nvidia_peermem);
  members.put("open_kernel_modules", software.open_kernel_modules);
  members.put("cuda", software.cuda);
  members.put("nccl_version", software.nccl_version);
  members.put("nccl_net_gdr_level", software.nccl_net_gdr_level);
  return members.take();
}

json::Array distances_to_json(const Host& host) {
  json::Array list;
  for (const StatedDistance& stated : host.distances) {
    Members item;
    item.put("from", stated.from);
    item.put("to", stated.to);
    item.put("distance", std::string(to_string(stated.distance)));
    list.push_back(item.take());
  }
  return list;
}

json::Array remarks_to_json(const Host& host) {
  json::Array list;
  for (const Remark& remark : host.remarks) {
    Members item;
    item.put("rule", remark.rule);
    item.put("severity", std::string(to_string(remark.severity)));
    item.put("where", remark.where);
    item.put("message", remark.message);
    item.put("remedy", remark.remedy);
    list.push_back(item.take());
  }
  return list;
}

json::Value host_to_json(const Host& host) {
  Members members;
  members.put("name", host.name);
  members.put("virtual_machine", host.virtual_machine);
  members.put("sockets_known", host.sockets_known);
  if (host.software != Software{}) members.put("software", software_to_json(host.software));
  json::Array sockets;
  for (const Socket& socket : host.sockets) {
    Members item;
    item.put("name", socket.name);
    item.put("model", socket.model);
    sockets.push_back(item.take());
  }
  members.put("sockets", std::move(sockets));
  json::Array numa_nodes;
  for (const NumaNode& numa : host.numa_nodes) {
    Members item;
    item.put("name", numa.name);
    item.put("socket", numa.socket);
    item.put("known", numa.known);
    item.put_nccl(numa.nccl);
    numa_nodes.push_back(item.take());
  }
  members.put("numa_nodes", std::move(numa_nodes));
  json::Array devices;
  for (const Device& device : host.devices) devices.push_back(device_to_json(device));
  members.put("devices", std::move(devices));
  json::Array nvlinks;
  for (const NvLink& link : host.nvlinks) {
    Members item;
    item.put("from", link.from);
    item.put("to", link.to);
    item.put("count", json::Value(link.count));
    item.put("model", link.model);
    item.put_nccl(link.nccl);
    nvlinks.push_back(item.take());
  }
  if (!nvlinks.empty()) members.put("nvlinks", std::move(nvlinks));
  if (!host.distances.empty()) members.put("distances", distances_to_json(host));
  if (!host.remarks.empty()) members.put("remarks", remarks_to_json(host));
  return members.take();
}

}  // namespace

json::Value to_json(const Topology& topology) {
  Members members;
  members.put("format", json::Value(1));
  members.put("name", topology.name);
  members.put("description", topology.description);
  json::Array sources;
  for (const std::string& source : topology.sources) sources.emplace_back(source);
  if (!sources.empty()) members.put("sources", std::move(sources));
  json::Array hosts;
  for (const Host& host : topology.hosts) hosts.push_back(host_to_json(host));
  members.put("hosts", std::move(hosts));
  if (topology.fabric) {
    Members fabric;
    fabric.put("model", topology.fabric->model);
    fabric.put("mtu", topology.fabric->mtu);
    fabric.put("switches", topology.fabric->switches);
    members.put("fabric", fabric.take());
  }
  if (topology.staging) {
    Members staging;
    staging.put("chunk", topology.staging->chunk);
    staging.put("depth", topology.staging->depth);
    members.put("staging", staging.take());
  }
  members.put_nccl(topology.nccl);
  return members.take();
}

}  // namespace gdr
