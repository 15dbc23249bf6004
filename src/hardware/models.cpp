#include <fmt/format.h>

#include <algorithm>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/hardware/hardware.hpp"

// Which model each component has.

namespace gdr {
namespace {

/// QEMU shows this speed for its bridges and for devices that it passes through.
bool runs_at_gen1(const Device& device) { return device.link && device.link->generation == 1; }

}  // namespace

std::string model_name(const Host& host, const Device& device) {
  if (!device.model.empty()) return device.model;
  if (device.kind != DeviceKind::nvme) return "generic";
  constexpr int usual = 4;
  const bool believed = !(runs_at_gen1(device) && host.virtual_machine.value_or(false));
  return fmt::format("gen{}",
                     device.link && believed ? std::clamp(device.link->generation, 3, 5) : usual);
}

std::string model_name(const Socket& socket) {
  return socket.model.empty() ? "generic" : socket.model;
}

bool names_model(const std::string& model) { return !model.empty() && model != "generic"; }

template <typename Model>
const Model& Hardware::asked(std::string_view kind, const Model& model) const {
  asked_.emplace(&model.header, kind);
  return model;
}

std::set<ModelName> Hardware::models_asked() const {
  std::set<ModelName> names;
  for (const auto& [header, kind] : asked_) names.emplace(kind, header->name);
  return names;
}

template <typename Model, typename Find>
const Model& Hardware::once(ByVertex<Model>& known, VertexId id, std::string_view kind,
                            Find find) const {
  const Model*& model = known[id];
  if (model == nullptr) model = &asked(kind, find());
  return *model;
}

const CpuModel& Hardware::cpu(VertexId id) const {
  return once(cpus_, id, "cpu", [&]() -> const CpuModel& {
    const Vertex& v = graph_->vertex(id);
    const Host& host = topology().hosts.at(v.host);
    std::size_t socket = v.index;
    if (v.kind == VertexKind::memory) socket = graph_->socket_of_numa(v.host, v.index);
    if (v.kind == VertexKind::host_bridge)
      socket = graph_->socket_of_numa(v.host, graph_->numa_of({v.host, v.index}));
    return models_->cpu(model_name(host.sockets.at(socket)));
  });
}

namespace {

std::string model_at(const Graph& graph, VertexId id) {
  return model_name(graph.topology().hosts.at(graph.vertex(id).host), *graph.device_at(id));
}

}  // namespace

const GpuModel& Hardware::gpu(VertexId id) const {
  return once(gpus_, id, "gpu",
              [&]() -> const GpuModel& { return models_->gpu(model_at(*graph_, id)); });
}
const NvmeModel& Hardware::nvme(VertexId id) const {
  return once(drives_, id, "nvme",
              [&]() -> const NvmeModel& { return models_->nvme(model_at(*graph_, id)); });
}
const NicModel& Hardware::nic(VertexId id) const {
  return once(nics_, id, "nic",
              [&]() -> const NicModel& { return models_->nic(model_at(*graph_, id)); });
}
const SwitchModel& Hardware::pci_switch(VertexId id) const {
  return once(switches_, id, "switch", [&]() -> const SwitchModel& {
    const Device* known = graph_->device_at(id);  // nullptr: only a stated distance implies it
    return models_->pci_switch(known != nullptr && !known->model.empty() ? known->model
                                                                         : std::string("generic"));
  });
}

const SoftwareModel& Hardware::software(const std::string& name) const {
  return asked("software", models_->software(name));
}

const FabricModel& Hardware::fabric() const {
  check(topology().fabric.has_value(), "a wire without a fabric");
  return asked("fabric", models_->fabric(topology().fabric->model));
}

const PcieModel& Hardware::pcie(int generation) const {
  const PcieModel*& model = generations_[generation];
  if (model == nullptr) model = &asked("pcie", models_->pcie(generation));
  return *model;
}

const NvlinkModel* Hardware::find_nvlink(const Hop& hop) const {
  const Edge& edge = graph_->edge(hop.edge);
  const NvLink& link = topology().hosts.at(edge.host).nvlinks.at(edge.index);
  if (!link.model.empty()) return &asked("nvlink", models_->nvlink(link.model));
  for (const VertexId end : {hop.from, hop.to})
    if (graph_->vertex(end).kind == VertexKind::gpu)
      if (const auto& generation = gpu(end).nvlink_generation)
        return &asked("nvlink", models_->nvlink(fmt::format("nvlink{}", generation->value)));
  return nullptr;
}

const NvlinkModel& Hardware::nvlink(const Hop& hop) const {
  if (const NvlinkModel* model = find_nvlink(hop)) return *model;
  throw InputError(
      fmt::format("{} to {}: the NVLink's generation is not known; give \"model\" in \"nvlinks\"",
                  graph_->label(hop.from), graph_->label(hop.to)));
}

Basis Hardware::model_basis(DeviceId id) const {
  return names_model(device(id).model) ? Basis::stated : Basis::assumed;
}

Fact<const CpuModel*> Hardware::cpu_above(DeviceId id) const {
  const std::size_t index = graph_->socket_of_numa(id.host, graph_->numa_of(id));
  const bool named = names_model(host_of(id).sockets.at(index).model);
  return {&cpu(graph_->socket(id.host, index)), named ? Basis::stated : Basis::unknown};
}

bool Hardware::is_amd_gpu(DeviceId id) const {
  return gpu(id).amd_gfx.has_value() || device(id).pci_id.starts_with("1002:");
}

std::string Hardware::collective_library(DeviceId id) const {
  return is_amd_gpu(id) ? "RCCL" : "NCCL";
}

bool Hardware::is_virtual_switch(DeviceId id) const {
  const Device& device = this->device(id);
  if (device.kind != DeviceKind::pci_switch) return false;
  return pci_switch(id).is_virtual.value || (host_of(id).virtual_machine.value_or(false) &&
                                             device.model.empty() && runs_at_gen1(device));
}

bool Hardware::shows_virtual_link(DeviceId id) const {
  const Device& device = this->device(id);
  if (!device.link) return false;
  if (is_virtual_switch(id)) return true;
  return runs_at_gen1(device) &&
         (host_of(id).virtual_machine.value_or(false) ||
          (device.kind == DeviceKind::gpu && graph_->has_c2c(graph_->device(id))));
}

}  // namespace gdr
