#include "sim/range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "topology/model_variation.hpp"

namespace gdr::sim {
namespace {

std::set<std::pair<std::string, std::string>> models_in(const Topology& topology, const ModelLibrary& models) {
  std::set<std::pair<std::string, std::string>> used;
  const auto or_generic = [](const std::string& model) { return model.empty() ? std::string("generic") : model; };
  for (const Host& host : topology.hosts) {
    for (const Socket& socket : host.sockets) used.insert({"cpu", or_generic(socket.model)});
    for (const Device& device : host.devices) switch (device.kind) {
        case DeviceKind::gpu: {
          used.insert({"gpu", or_generic(device.model)});
          const GpuModel& gpu = models.gpu(or_generic(device.model));
          if (!host.nvlinks.empty() && gpu.nvlink_generation) used.insert({"nvlink", fmt::format("nvlink{}", gpu.nvlink_generation->value)});
          break;
        }
        case DeviceKind::nic: used.insert({"nic", or_generic(device.model)}); break;
        case DeviceKind::pci_switch: used.insert({"switch", or_generic(device.model)}); break;
        case DeviceKind::nvme: used.insert({"nvme", device.model.empty() ? "gen4" : device.model}); break;
        default: break;
      }
    for (const NvLink& link : host.nvlinks)
      if (!link.model.empty()) used.insert({"nvlink", link.model});
  }
  if (topology.fabric) used.insert({"fabric", topology.fabric->model});
  for (const std::string& generation : models.names("pcie")) used.insert({"pcie", generation});
  return used;
}

}  // namespace

Range range_of(const ModelLibrary& models, const Topology& topology, const std::function<double(const ModelLibrary&)>& predict) {
  const double typical = predict(models);
  double up = std::pow(std::log1p(model_spread), 2);
  double down = up;
  Range range;
  for (const auto& [kind, model] : models_in(topology, models))
    for (const UncertainParameter& parameter : uncertain_parameters(models, kind, model, estimate_spread)) {
      const double a = predict(varied(models, parameter, Bound::low));
      const double b = predict(varied(models, parameter, Bound::high));
      const double least = std::min({a, b, typical});
      const double most = std::max({a, b, typical});
      down += std::pow(std::log(typical / least), 2);
      up += std::pow(std::log(most / typical), 2);
      if (most / least > 1.005) range.contributions.push_back({fmt::format("models/{}/{}.json {}", kind, model, parameter.name), least, most, parameter.estimate});
    }
  range.low = typical * std::exp(-std::sqrt(down));
  range.high = typical * std::exp(std::sqrt(up));
  std::stable_sort(range.contributions.begin(), range.contributions.end(), [](const auto& x, const auto& y) { return x.high / x.low > y.high / y.low; });
  return range;
}

}  // namespace gdr::sim
