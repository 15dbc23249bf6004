#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/flow/bound.hpp"
#include "sim/flow/context.hpp"
#include "sim/predict.hpp"
#include "src/common/error.hpp"

namespace gdr::sim {
namespace {

std::string link_text(const Hardware& hardware, const Hop& hop) {
  switch (hop.kind) {
    case HopKind::pcie: {
      const auto link = hardware.link(hop.edge).value;
      return link ? to_string(*link) : "virtual";
    }
    case HopKind::root_complex:
      return "root complex";
    case HopKind::memory:
      return "memory";
    case HopKind::socket_link: {
      const auto& name = hardware.cpu(hop.from).socket_link_name;
      return name ? name->value : "socket link";
    }
    case HopKind::nvlink:
      return "NVLink";
    case HopKind::c2c:
      return "C2C";
    case HopKind::wire:
      return "network";
  }
  return {};
}

std::vector<HopReport> hops_of(const Hardware& hardware, const Stage& stage, const StageSpec& spec,
                               const Bottleneck& bottleneck) {
  std::vector<HopReport> hops;
  const double packets = std::ceil(stage.bytes.as_double() / spec.packet.as_double());
  const double on_link = stage.bytes.as_double() + packets * spec.units_per_packet;
  for (std::size_t i = 0; i < stage.data.size(); ++i) {
    const Hop& hop = stage.data[i];
    HopReport report;
    report.from = hardware.graph().label(hop.from);
    report.to = hardware.graph().label(hop.to);
    report.link = link_text(hardware, hop);
    const auto resource = resource_of(hardware.graph(), hop);
    report.limits = resource && bottleneck == Bottleneck(*resource);
    report.bandwidth = capacity_of(hardware, stage, hop);
    if (hop.kind == HopKind::wire) {
      report.latency = hop.up ? hardware.wire_latency() : Duration{};
    } else {
      if (i == 0) report.latency += hardware.crossing(stage.data, 0);
      report.latency += hardware.crossing(stage.data, i + 1);
    }
    report.bytes =
        hop.kind == HopKind::pcie || hop.kind == HopKind::wire ? on_link : stage.bytes.as_double();
    hops.push_back(std::move(report));
  }
  return hops;
}

/// Labels of the vertices where a bottleneck is.
std::vector<std::string> places_of(const Graph& graph, const Bottleneck& bottleneck) {
  std::vector<std::string> places;
  if (const auto* resource = std::get_if<ResourceId>(&bottleneck)) {
    places.push_back(graph.label(resource->at));
    if (resource->kind == ResourceKind::socket_link || resource->kind == ResourceKind::nvlink_pair)
      places.push_back(graph.label(resource->to));
  } else if (const auto* limit = std::get_if<LimitId>(&bottleneck)) {
    if (limit->at) places.push_back(graph.label(*limit->at));
  } else if (const auto* step = std::get_if<StepId>(&bottleneck)) {
    for (const auto& place : {step->by, step->from, step->to})
      if (place) places.push_back(graph.label(*place));
  }
  return places;
}

}  // namespace

Timeline timeline(Simulator& simulator, const Hardware& hardware, const Transfer& transfer) {
  ScenarioBuilder alone(hardware);
  alone.add(plan_transfer(hardware.graph(), hardware.models(), transfer), one_message);
  Scenario scenario = alone.take();
  scenario.extrapolate = false;
  scenario.record = true;
  const FlowSpec& flow = scenario.flows.front();
  Timeline result;
  double spans = 0;
  for (const StageSpec& spec : flow.stages) {
    Timeline::Step& step = result.steps.emplace_back();
    step.id = spec.step;
    for (const std::size_t index : spec.resources)
      step.resources.push_back(scenario.resources[index].id);
    spans +=
        spec.whole_message ? 1 : std::ceil(flow.message.as_double() / spec.granule.as_double());
  }
  if (spans > static_cast<double>(most_spans))
    throw InputError(
        fmt::format("{} make {:.0f} pieces, too many for a time line; take a smaller --size",
                    to_string(transfer.size), spans));
  const Outcome outcome = simulator.run(scenario);
  result.spans = outcome.spans;
  result.end = outcome.flows.front().first_arrival;
  return result;
}

Explanation explain(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                    const Options& options) {
  Explanation explanation;
  explanation.prediction = predict(simulator, hardware, transfer, options);
  const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
  ScenarioBuilder alone(hardware);
  alone.add(plan, one_message);
  const Scenario scenario = alone.take();
  const Outcome outcome = simulator.run(scenario);
  const FlowSpec& flow = scenario.flows.front();
  explanation.bottleneck_at = places_of(hardware.graph(), explanation.prediction.bottleneck);
  for (std::size_t i = 0; i < flow.stages.size(); ++i) {
    const StageSpec& spec = flow.stages[i];
    StageReport report;
    report.step = spec.step;
    report.times = outcome.flows.front().stages[i];
    report.latency = spec.latency;
    const StageBound limit = bound_beside_links(scenario, flow, spec);
    report.limit = limit.by;
    report.limit_rate = limit.bandwidth;
    if (spec.plan_stage != StageSpec::no_plan_stage) {
      const Stage& stage = plan.stages[spec.plan_stage];
      report.mover = stage.mover;
      report.from = hardware.graph().label(stage.from);
      report.to = hardware.graph().label(stage.to);
      report.bytes = stage.bytes;
      report.hops = hops_of(hardware, stage, spec, explanation.prediction.bottleneck);
    }
    explanation.stages.push_back(std::move(report));
    for (const std::size_t index : spec.resources) {
      const Resource& resource = scenario.resources[index];
      if (explanation.prediction.bottleneck != Bottleneck(resource.id)) continue;
      explanation.bottleneck_rate = resource.capacity;
      explanation.bottleneck_stages.push_back(i);
    }
  }
  return explanation;
}

}  // namespace gdr::sim
