#include "src/nccl/distance.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/nccl/history.hpp"
#include "src/nccl/paths.hpp"

namespace gdr {
namespace {

/// NCCL's "CPU" is a NUMA node with all its host bridges.
nccl::PathType type_by_tree(const Graph& graph, DeviceId a, DeviceId b) {
  if (nvlink_count(graph, a, b) > 0) return nccl::PathType::nvl;
  switch (pcie_distance(graph, a, b)) {
    case Distance::self:
      return nccl::PathType::loc;
    case Distance::pix:
      return nccl::PathType::pix;
    case Distance::pxb:
      return nccl::PathType::pxb;
    case Distance::phb:
    case Distance::phb_or_node:
    case Distance::node:
      return nccl::PathType::phb;
    case Distance::node_or_sys:
    case Distance::sys:
      return nccl::PathType::sys;
    case Distance::unknown:
    case Distance::none:
      break;
  }
  return nccl::PathType::dis;
}

bool runs_nccl(const Hardware& hardware, const std::string& version) {
  const auto gpus = devices_of_kind(hardware.topology(), DeviceKind::gpu);
  return nccl::is_modelled(version) && std::none_of(gpus.begin(), gpus.end(), [&](DeviceId gpu) {
           return hardware.is_amd_gpu(gpu);
         });
}

}  // namespace

NcclDistances::NcclDistances(const Hardware& hardware) : graph_(hardware.graph()) {
  const Host& host = graph_.topology().hosts.front();
  if (!host.software.nccl_version.empty()) settings_.version = host.software.nccl_version;
  settings_.net_gdr_level = host.software.nccl_net_gdr_level;
  const bool known = runs_nccl(hardware, settings_.version);
  level_ = nccl::gdr_level(known ? nccl::rules_of(settings_.version) : nccl::Rules{}, settings_);
  if (known && !nccl::known_version(settings_.version)) unknown_version_ = settings_.version;
  if (known) look(hardware.models());
}

void NcclDistances::look(const ModelLibrary& models) {
  const nccl::View view = nccl::view(graph_.topology(), 0, &models, settings_);
  // If the highest level does not enable it, there is another reason.
  nccl::Settings everything = settings_;
  everything.net_gdr_level = nccl::to_string(nccl::PathType::sys);
  const nccl::View unlimited = nccl::view(graph_.topology(), 0, &models, everything);
  for (std::size_t g = 0; g < view.gpus.size(); ++g) {
    const std::size_t gpu = view.gpus[g].device;
    for (std::size_t n = 0; n < view.nets.size(); ++n) {
      const DevicePair pair(gpu, view.nets[n].device);
      const nccl::GpuNet& own = view.gpu_nets[g][n];
      // Of a NIC's ports the nearest counts, and one with GPUDirect RDMA is enough.
      const auto [type, first] = types_.try_emplace(pair, own.own_path.type);
      type->second = std::min(type->second, own.own_path.type);
      // The level decides whether writes are allowed; reads need that and have further conditions.
      const bool too_low = unlimited.gpu_nets[g][n].gdr_write && !own.gdr_write;
      bool& all_too_low = too_low_.try_emplace(pair, too_low).first->second;
      if (!first) all_too_low = all_too_low && too_low;
    }
    for (std::size_t p = 0; p < view.gpus.size(); ++p)
      if (p != g) types_.try_emplace({gpu, view.gpus[p].device}, view.gpu_gpus[g][p].path.type);
  }
}

nccl::PathType NcclDistances::type(DeviceId a, DeviceId b) const {
  const bool nvlink = nvlink_count(graph_, a, b) > 0;
  if (!nvlink && (graph_.stated_distance(a, b) || pcie_distance(graph_, a, b) == Distance::unknown))
    return type_by_tree(graph_, a, b);
  for (const DevicePair& pair : {DevicePair(a.device, b.device), DevicePair(b.device, a.device)})
    if (const auto found = types_.find(pair); found != types_.end()) return found->second;
  return type_by_tree(graph_, a, b);
}

bool NcclDistances::level_too_low(DeviceId gpu, DeviceId nic) const {
  const auto found = too_low_.find({gpu.device, nic.device});
  if (graph_.stated_distance(gpu, nic)) return type(gpu, nic) > level_;
  return found != too_low_.end() ? found->second : type(gpu, nic) > level_;
}

std::string NcclDistances::level_text() const {
  const std::string& set = settings_.net_gdr_level;
  if (set.empty()) return fmt::format("its default level {}", nccl::to_string(level_));
  if (nccl::parse_level(set)) return fmt::format("NCCL_NET_GDR_LEVEL={}", set);
  return fmt::format("NCCL_NET_GDR_LEVEL={}, which it does not understand and treats as {},", set,
                     nccl::to_string(level_));
}

}  // namespace gdr
