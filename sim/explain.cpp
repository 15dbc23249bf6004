#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/flow/flow_builder.hpp"
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

/// What NVLink's resources are called depends on whether a switch is in the way.
bool is_bottleneck(const Hardware& hardware, const Hop& hop, const std::string& bottleneck) {
  if (hop.kind != HopKind::nvlink) return bottleneck == link_resource(hardware, hop);
  const std::string from = hardware.graph().label(hop.from);
  const std::string to = hardware.graph().label(hop.to);
  return bottleneck == from + " NVLink out" || bottleneck == to + " NVLink in" ||
         bottleneck == fmt::format("{} to {} NVLink", from, to);
}

std::vector<HopReport> hops_of(const Hardware& hardware, const Transfer& transfer,
                               const Stage& stage, const StageSpec& spec,
                               const std::string& bottleneck) {
  std::vector<HopReport> hops;
  const double packets = std::ceil(stage.bytes.as_double() / spec.packet.as_double());
  const double on_link = stage.bytes.as_double() + packets * spec.units_per_packet;
  for (std::size_t i = 0; i < stage.data.size(); ++i) {
    const Hop& hop = stage.data[i];
    HopReport report;
    report.from = hardware.graph().label(hop.from);
    report.to = hardware.graph().label(hop.to);
    report.link = link_text(hardware, hop);
    report.limits = is_bottleneck(hardware, hop, bottleneck);
    if (hop.kind == HopKind::pcie) report.bandwidth = hardware.link_bandwidth(hop);
    if (hop.kind == HopKind::memory)
      report.bandwidth = hardware.memory_bandwidth(
          hardware.graph().vertex(hop.to).kind == VertexKind::memory ? hop.to : hop.from);
    if (hop.kind == HopKind::c2c) report.bandwidth = hardware.c2c_bandwidth(hop);
    if (hop.kind == HopKind::nvlink)
      report.bandwidth = hardware.nvlink_bandwidth(transfer.from, transfer.to);
    if (hop.kind == HopKind::socket_link) report.bandwidth = hardware.socket_link_bandwidth(hop);
    if (hop.kind == HopKind::root_complex)
      report.bandwidth = hardware.cpu(hop.from).root_complex_bandwidth.value;
    if (hop.kind == HopKind::wire) {
      report.latency = hop.up ? hardware.wire_latency() : Duration{};
      const VertexId nic = hop.up ? hop.from : hop.to;
      report.bandwidth =
          hardware.graph().device_at(nic)->port_rate.value_or(hardware.nic(nic).port_rate.value);
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

/// What bounds the stage beside the links of its hops: its own limit, or a resource that is no
/// link.
std::pair<std::string, Bandwidth> tightest_limit(const Scenario& scenario, const FlowSpec& flow,
                                                 const StageSpec& spec) {
  const double per_byte = units_per_byte(flow, spec);
  std::pair<std::string, Bandwidth> least;
  const auto consider = [&](const std::string& name, double units_per_second) {
    const Bandwidth payload{units_per_second / per_byte};
    if (per_byte > 0 && (least.first.empty() || payload < least.second)) least = {name, payload};
  };
  if (spec.limit > 0) consider(spec.limit_name, spec.limit);
  for (const std::size_t index : spec.resources) {
    const std::string& name = scenario.resources[index].name;
    const bool hop = name.find(" link ") != std::string::npos ||
                     name.find(" port ") != std::string::npos || name.ends_with(" memory") ||
                     name.find("root complex") != std::string::npos;
    if (!hop) consider(name, scenario.resources[index].units_per_second);
  }
  return least;
}

}  // namespace

Timeline timeline(Simulator& simulator, const Hardware& hardware, const Transfer& transfer) {
  ScenarioBuilder alone(hardware);
  alone.add(plan_transfer(hardware.graph(), hardware.models(), transfer), {1, 1, 1, {}, 1, 0});
  Scenario scenario = alone.take();
  scenario.extrapolate = false;
  scenario.record = true;
  const FlowSpec& flow = scenario.flows.front();
  Timeline result;
  double spans = 0;
  for (const StageSpec& spec : flow.stages) {
    Timeline::Step& step = result.steps.emplace_back();
    step.name = spec.name;
    for (const std::size_t index : spec.resources)
      step.resources.push_back(scenario.resources[index].name);
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
  alone.add(plan, {1, 1, 1, {}, 1, 0});
  const Scenario scenario = alone.take();
  const Outcome outcome = simulator.run(scenario);
  const FlowSpec& flow = scenario.flows.front();
  for (std::size_t i = 0; i < flow.stages.size(); ++i) {
    const StageSpec& spec = flow.stages[i];
    StageReport report;
    report.name = spec.name;
    report.times = outcome.flows.front().stages[i];
    report.latency = spec.latency;
    const auto [limit, rate] = tightest_limit(scenario, flow, spec);
    report.limit = limit;
    report.limit_rate = rate;
    if (spec.plan_stage != StageSpec::no_plan_stage) {
      const Stage& stage = plan.stages[spec.plan_stage];
      report.mover = stage.mover;
      report.from = hardware.graph().label(stage.from);
      report.to = hardware.graph().label(stage.to);
      report.bytes = stage.bytes;
      report.hops = hops_of(hardware, transfer, stage, spec, explanation.prediction.bottleneck);
    }
    explanation.stages.push_back(std::move(report));
    for (const std::size_t index : spec.resources) {
      const Resource& resource = scenario.resources[index];
      if (resource.name != explanation.prediction.bottleneck) continue;
      explanation.bottleneck_rate = resource.capacity;
      explanation.bottleneck_stages.push_back(i);
    }
  }
  return explanation;
}

}  // namespace gdr::sim
