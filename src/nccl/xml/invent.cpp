#include "src/nccl/xml/invent.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "src/hardware/hardware.hpp"
#include "src/nccl/xml/elements.hpp"
#include "src/nccl/xml/facts.hpp"
#include "src/nccl/xml/identify.hpp"

namespace gdr::nccl {
namespace {

/// The cores [first, first + count) as a kernel mask: groups of eight digits, the highest first.
std::string core_mask(std::int64_t first, std::int64_t count) {
  std::string mask;
  for (std::int64_t group = (first + count + 31) / 32 - 1; group >= 0; --group) {
    std::uint32_t bits = 0;
    for (std::int64_t core = std::max(first, group * 32);
         core < std::min(first + count, group * 32 + 32); ++core)
      bits |= std::uint32_t{1} << static_cast<unsigned>(core - group * 32);
    mask += fmt::format("{}{:08x}", mask.empty() ? "" : ",", bits);
  }
  return mask;
}

std::string_view class_of(const Device& device) {
  if (device.kind == DeviceKind::gpu) return "0x030200";
  if (device.kind == DeviceKind::pci_switch) return "0x060400";
  return device.link_layer == LinkLayer::ethernet ? "0x020000" : "0x020700";
}

}  // namespace

Inventor::Inventor(const Host& host, std::size_t host_index, const ModelLibrary* models)
    : host_(host), host_index_(host_index), models_(models), bus_ids_(host.devices.size()) {
  for (const std::string kind : {"cpu", "switch", "gpu", "nic", "nvlink"})
    if (models != nullptr)
      for (const std::string& name : models->names(kind)) known_models_.emplace(kind, name);
  for (const Device& device : host.devices) {
    if (!device.address.empty()) addresses_.insert(device.address);
    for (const NcclElement& element : device.nccl) {
      const auto dev = integer_attribute(element, "dev");
      if (!dev || *dev < 0 || *dev > 1'000'000) continue;
      if (element.tag == "gpu") next_gpu_ = std::max(next_gpu_, *dev + 1);
      if (element.tag == "net") next_net_ = std::max(next_net_, *dev + 1);
    }
  }
}

const GpuModel* Inventor::gpu_model(const Device& device) const {
  const std::string name = model_name(host_, device);
  return has_model("gpu", name) ? &models_->gpu(name) : nullptr;
}

const NicModel* Inventor::nic_model(const Device& device) const {
  const std::string name = model_name(host_, device);
  return has_model("nic", name) ? &models_->nic(name) : nullptr;
}

const CpuModel* Inventor::cpu_model(const std::string& name) const {
  const std::string known = gdr::model_name(Socket{"", name});
  return has_model("cpu", known) ? &models_->cpu(known) : nullptr;
}

std::string Inventor::pci_id(const Device& device) const {
  if (!device.pci_id.empty()) return device.pci_id;
  const std::vector<std::string>* ids = nullptr;
  if (device.kind == DeviceKind::gpu && gpu_model(device) != nullptr)
    ids = &gpu_model(device)->header.pci_ids;
  if (device.kind == DeviceKind::nic && nic_model(device) != nullptr)
    ids = &nic_model(device)->header.pci_ids;
  if (device.kind == DeviceKind::pci_switch && has_model("switch", device.model))
    ids = &models_->pci_switch(device.model).header.pci_ids;
  return ids != nullptr && !ids->empty() ? ids->front() : std::string();
}

const std::string& Inventor::bus_id(const Device& device) {
  const auto index = static_cast<std::size_t>(&device - host_.devices.data());
  std::string& id = bus_ids_.at(index);
  if (!device.nccl.empty()) {
    const std::string* kept = attribute(device.nccl.front(), "busid");
    if (kept != nullptr && device.address.empty()) return *kept;
  }
  if (id.empty()) id = device.address;
  // No machine uses domains from fffe down.
  for (std::size_t n = index; id.empty(); n += host_.devices.size()) {
    const std::string made_up =
        fmt::format("{:04x}:{:02x}:00.0", 0xfffeU - (n / 256) % 0xf000U, n % 256);
    if (addresses_.insert(made_up).second) id = made_up;
  }
  return id;
}

std::vector<NcclElement> Inventor::device(const Device& device) {
  if (device.kind != DeviceKind::gpu && device.kind != DeviceKind::nic &&
      device.kind != DeviceKind::pci_switch)
    return {};
  NcclElement pci{"pci", {{"busid", bus_id(device)}, {"class", std::string(class_of(device))}}};
  if (const std::string id = pci_id(device); !id.empty()) {
    pci.attributes.emplace_back("vendor", "0x" + id.substr(0, 4));
    pci.attributes.emplace_back("device", "0x" + id.substr(5));
  }
  pci.attributes.emplace_back("link_speed",
                              device.link ? link_speed_text(device.link->generation) : "");
  pci.attributes.emplace_back("link_width", device.link ? std::to_string(device.link->width) : "0");
  std::vector<NcclElement> elements{pci};
  if (device.kind == DeviceKind::gpu) elements.push_back(gpu(device));
  if (device.kind == DeviceKind::nic)
    for (NcclElement& element : nic(device)) elements.push_back(std::move(element));
  return elements;
}

NcclElement Inventor::gpu(const Device& device) {
  const std::string dev = std::to_string(next_gpu_++);
  NcclElement gpu{"gpu", {{"dev", dev}}};
  const GpuModel* model = gpu_model(device);
  if (model != nullptr && model->compute_capability)
    gpu.attributes.emplace_back("sm", std::to_string(model->compute_capability->value));
  if (model != nullptr && model->amd_gfx) gpu.attributes.emplace_back("gcn", model->amd_gfx->value);
  const bool gdr = device.gdr.value_or(model == nullptr || model->gpudirect_rdma.value);
  gpu.attributes.emplace_back("rank", dev);
  gpu.attributes.emplace_back("gdr", gdr ? "1" : "0");
  return gpu;
}

std::vector<NcclElement> Inventor::nic(const Device& device) {
  std::vector<NcclElement> elements{{"nic", {}}};
  const NicModel* model = nic_model(device);
  const int ports = device.ports.value_or(
      model != nullptr && !device.model.empty() ? static_cast<int>(model->ports.value) : 1);
  for (int port = 1; port <= ports; ++port) elements.push_back(net(device, port));
  return elements;
}

NcclElement Inventor::net(const Device& device, int port) {
  const NicModel* model = nic_model(device);
  const std::int64_t dev = next_net_++;
  NcclElement net{"net",
                  {{"name", device.rdma_device.empty() ? device.name : device.rdma_device},
                   {"dev", std::to_string(dev)}}};
  std::optional<Bandwidth> rate = device.port_rate;
  if (!rate && model != nullptr) rate = model->port_rate.value;
  if (rate)
    net.attributes.emplace_back("speed", fmt::format("{:.0f}", rate->bytes_per_second / 1.25e5));
  const bool gdr = device.gdr.value_or(model == nullptr || model->rdma.value != "none");
  net.attributes.emplace_back("port", std::to_string(port));
  net.attributes.emplace_back("latency", "0.000000");
  net.attributes.emplace_back(
      "guid", fmt::format("{:#x}", ((host_index_ + 1) << 24U) + static_cast<std::size_t>(dev) + 1));
  net.attributes.emplace_back("maxconn", "131072");
  net.attributes.emplace_back("gdr", gdr ? "1" : "0");
  return net;
}

std::vector<NcclElement> Inventor::numa_node(const NumaNode& numa) {
  // numaN is node N; a node with another name is numbered by its place in the list.
  std::int64_t id = &numa - host_.numa_nodes.data();
  if (numa.name.starts_with("numa"))
    std::from_chars(numa.name.data() + 4, numa.name.data() + numa.name.size(), id);
  NcclElement cpu{"cpu", {{"numaid", std::to_string(id)}}};
  const auto socket = socket_index(host_, numa.socket);
  const std::string name = socket ? host_.sockets[*socket].model : std::string();
  if (const CpuModel* model = cpu_model(name)) {
    const auto sharing = std::count_if(host_.numa_nodes.begin(), host_.numa_nodes.end(),
                                       [&](const NumaNode& n) { return n.socket == numa.socket; });
    const std::int64_t cores = std::max<std::int64_t>(1, model->cores.value / sharing);
    cpu.attributes.emplace_back("affinity", core_mask(first_core_, cores));
    first_core_ += cores;
  }
  set_cpu(cpu, name);
  return {cpu};
}

void Inventor::set_cpu(NcclElement& cpu, const std::string& name) const {
  const CpuModel* model = cpu_model(name);
  const bool known = model != nullptr && !model->cpuid.empty();
  // NCCL refuses a cpu without arch and an x86 cpu without vendor; it assumes nothing about an
  // unknown vendor.
  set_attribute(cpu, "arch", model != nullptr && !model->arch.empty() ? model->arch : "x86_64");
  set_attribute(cpu, "vendor", known ? model->cpuid.front().vendor : "unknown");
  set_attribute(cpu, "familyid",
                std::to_string(known ? nccl_family(model->cpuid.front().family) : 0));
  set_attribute(cpu, "modelid",
                std::to_string(known && !model->cpuid.front().models.empty()
                                   ? model->cpuid.front().models.front()
                                   : 0));
}

int Inventor::c2c_bandwidth(const NvLink& link) const {
  // POWER9 has NVLinks at the CPU as well; NCCL calls them nvlink.
  if (link.model != "nvlink-c2c" || !has_model("nvlink", link.model)) return 0;
  return static_cast<int>(models_->nvlink(link.model).link_bandwidth.value.bytes_per_second / 1e6);
}

}  // namespace gdr::nccl
