#include "src/nccl/xml/identify.hpp"

#include "src/nccl/xml/elements.hpp"

namespace gdr::nccl {
namespace {

/// A key that two models claim identifies neither.
template <typename Map, typename Key>
void claim(Map& map, const Key& key, const std::string& model) {
  const auto [at, is_new] = map.emplace(key, model);
  if (!is_new && at->second != model) at->second.clear();
}

template <typename Map, typename Key>
std::string look_up(const Map& map, const Key& key) {
  const auto found = map.find(key);
  return found != map.end() ? found->second : std::string();
}

}  // namespace

std::string gfx_name(const NcclElement& gpu) {
  const std::string* gcn = attribute(gpu, "gcn");
  if (gcn == nullptr || gcn->empty()) return {};
  if (*gcn == "910") return "gfx90a";
  return gcn->starts_with("gfx") ? *gcn : "gfx" + *gcn;
}

int cpu_family(std::int64_t nccl_family) {
  const bool extended = nccl_family > 0xf && (nccl_family & 0xf) == 0xf && nccl_family <= 0xfff;
  return static_cast<int>(extended ? 0xf + (nccl_family >> 4) : nccl_family);
}

int nccl_family(int cpu_family) {
  return cpu_family > 0xf ? 0xf + ((cpu_family - 0xf) << 4) : cpu_family;
}

Identifier::Identifier(const ModelLibrary* models) {
  if (models == nullptr) return;
  const auto add = [&](DeviceKind kind, const std::string& folder, auto header_of) {
    for (const std::string& name : models->names(folder))
      for (const std::string& id : header_of(name).pci_ids)
        claim(devices_, std::pair(kind, id), name);
  };
  add(DeviceKind::pci_switch, "switch", [&](const std::string& name) -> const ModelHeader& {
    return models->pci_switch(name).header;
  });
  add(DeviceKind::gpu, "gpu",
      [&](const std::string& name) -> const ModelHeader& { return models->gpu(name).header; });
  add(DeviceKind::nic, "nic",
      [&](const std::string& name) -> const ModelHeader& { return models->nic(name).header; });
  add(DeviceKind::nvme, "nvme",
      [&](const std::string& name) -> const ModelHeader& { return models->nvme(name).header; });
  for (const std::string& name : models->names("gpu"))
    if (const auto& gfx = models->gpu(name).amd_gfx) claim(amd_gpus_, gfx->value, name);
  for (const std::string& name : models->names("cpu"))
    for (const CpuIdentity& identity : models->cpu(name).cpuid)
      for (const int model : identity.models)
        claim(cpus_, std::tuple(identity.vendor, identity.family, model), name);
}

std::string Identifier::device_model(const Device& device) const {
  if (!device.pci_id.empty()) return look_up(devices_, std::pair(device.kind, device.pci_id));
  const NcclElement* gpu = device.kind == DeviceKind::gpu ? find(device.nccl, "gpu") : nullptr;
  return gpu != nullptr ? look_up(amd_gpus_, gfx_name(*gpu)) : std::string();
}

std::optional<DeviceKind> Identifier::kind_of(const std::string& pci_id) const {
  std::optional<DeviceKind> kind;
  for (const DeviceKind one :
       {DeviceKind::gpu, DeviceKind::nic, DeviceKind::nvme, DeviceKind::pci_switch}) {
    if (pci_id.empty() || !devices_.contains({one, pci_id})) continue;
    if (kind) return std::nullopt;
    kind = one;
  }
  return kind;
}

std::string Identifier::cpu_model(const std::string& vendor, int family, int model) const {
  return look_up(cpus_, std::tuple(vendor, family, model));
}

std::string Identifier::cpu_model(const NcclElement& cpu) const {
  const std::string* vendor = attribute(cpu, "vendor");
  const auto family = integer_attribute(cpu, "familyid");
  const auto model = integer_attribute(cpu, "modelid");
  if (vendor == nullptr || !family || !model || *family < 0 || *family > 0xfff || *model < 0 ||
      *model > 0xfff)
    return {};
  return look_up(cpus_, std::tuple(*vendor, cpu_family(*family), static_cast<int>(*model)));
}

}  // namespace gdr::nccl
