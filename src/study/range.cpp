#include "src/study/range.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/catalog/model_variation.hpp"

namespace gdr::study {
namespace {

std::string or_generic(const std::string& model) { return model.empty() ? "generic" : model; }

void add_vertex(const Hardware& hardware, VertexId id, std::set<ModelName>& used) {
  const Device* device = hardware.graph().device_at(id);
  switch (hardware.graph().vertex(id).kind) {
    case VertexKind::gpu:
      used.insert({"gpu", or_generic(device->model)});
      break;
    case VertexKind::nic:
      used.insert({"nic", or_generic(device->model)});
      break;
    case VertexKind::pci_switch:
      used.insert({"switch", or_generic(device->model)});
      break;
    case VertexKind::nvme:
      used.insert({"nvme", device->model.empty() ? "gen4" : device->model});
      break;
    default:
      break;
  }
}

void add_route(const Hardware& hardware, const Route& route, std::set<ModelName>& used) {
  for (const Hop& hop : route) {
    add_vertex(hardware, hop.from, used);
    add_vertex(hardware, hop.to, used);
    if (hop.kind == HopKind::pcie)
      if (const auto link = hardware.link(hop.edge))
        used.insert({"pcie", fmt::format("gen{}", link->generation)});
    if (hop.kind != HopKind::nvlink && hop.kind != HopKind::c2c) continue;
    const Edge& edge = hardware.graph().edge(hop.edge);
    const std::string& model =
        hardware.graph().topology().hosts.at(edge.host).nvlinks.at(edge.index).model;
    if (!model.empty()) used.insert({"nvlink", model});
    for (const VertexId end : {hop.from, hop.to})
      if (model.empty() && hardware.graph().vertex(end).kind == VertexKind::gpu &&
          hardware.gpu(end).nvlink_generation)
        used.insert(
            {"nvlink", fmt::format("nvlink{}", hardware.gpu(end).nvlink_generation->value)});
  }
}

}  // namespace

std::set<ModelName> models_of(const Hardware& hardware, const TransferPlan& plan) {
  std::set<ModelName> used;
  const Topology& topology = hardware.graph().topology();
  for (const Stage& stage : plan.stages) {
    add_vertex(hardware, stage.engine, used);
    add_route(hardware, stage.data, used);
    add_route(hardware, stage.requests, used);
  }
  for (const std::size_t host : {plan.transfer.from.host, plan.transfer.to.host})
    for (const Socket& socket : topology.hosts.at(host).sockets)
      used.insert({"cpu", or_generic(socket.model)});
  for (const std::string& name : plan.software) used.insert({"software", name});
  used.insert({"software", "usual"});
  for (const std::size_t host : {plan.transfer.from.host, plan.transfer.to.host})
    if (plan.transfer.window && topology.hosts.at(host).software.iommu == IommuMode::translate)
      used.insert({"software", "linux"});
  if (topology.fabric && plan.transfer.from.host != plan.transfer.to.host)
    used.insert({"fabric", topology.fabric->model});
  return used;
}

std::vector<Range> range_of(
    const ModelLibrary& models, const std::set<ModelName>& used,
    const std::function<std::vector<double>(const ModelLibrary&)>& predict) {
  const std::vector<double> typical = predict(models);
  const double own = std::pow(std::log1p(model_spread), 2);
  std::vector<Range> ranges(typical.size());
  std::vector<double> up(typical.size(), own);
  std::vector<double> down(typical.size(), own);
  for (const auto& [kind, model] : used)
    for (const UncertainParameter& parameter :
         uncertain_parameters(models, kind, model, estimate_spread)) {
      const std::vector<double> a = predict(varied(models, parameter, Bound::low));
      const std::vector<double> b = predict(varied(models, parameter, Bound::high));
      for (std::size_t i = 0; i < typical.size(); ++i) {
        const double least = std::min({a[i], b[i], typical[i]});
        const double most = std::max({a[i], b[i], typical[i]});
        down[i] += std::pow(std::log(typical[i] / least), 2);
        up[i] += std::pow(std::log(most / typical[i]), 2);
        if (most / least > 1 + least_contribution)
          ranges[i].contributions.push_back(
              {fmt::format("models/{}/{}.json {}", kind, model, parameter.name), least, most,
               parameter.estimate});
      }
    }
  for (std::size_t i = 0; i < typical.size(); ++i) {
    ranges[i].low = typical[i] * std::exp(-std::sqrt(down[i]));
    ranges[i].high = typical[i] * std::exp(std::sqrt(up[i]));
    std::stable_sort(ranges[i].contributions.begin(), ranges[i].contributions.end(),
                     [](const auto& x, const auto& y) { return x.high / x.low > y.high / y.low; });
  }
  return ranges;
}

PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options) {
  const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
  sim::Options near = options;
  near.near = true;
  auto ranges =
      range_of(hardware.models(), models_of(hardware, plan), [&](const ModelLibrary& models) {
        const sim::Prediction p =
            sim::predict(simulator, Hardware(hardware.graph(), models), transfer, near);
        return std::vector<double>{p.latency.us(), p.bandwidth.gigabytes_per_second()};
      });
  PredictionRange range{std::move(ranges[0]), std::move(ranges[1])};
  // No error of the model lifts a rate above what the ports signal.
  for (const auto& nic : {plan.from_nic, plan.to_nic}) {
    if (!nic) continue;
    const Bandwidth port =
        get(hardware.graph().topology(), *nic)
            .port_rate.value_or(hardware.nic(hardware.graph().device(*nic)).port_rate.value);
    range.bandwidth.high = std::min(range.bandwidth.high,
                                    port.gigabytes_per_second() * (options.bidirectional ? 2 : 1));
  }
  return range;
}

}  // namespace gdr::study
