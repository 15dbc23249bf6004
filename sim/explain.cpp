#include <cmath>

#include "sim/predict.hpp"

namespace gdr::sim {
namespace {

std::string link_text(const Parts& parts, const Hop& hop) {
  switch (hop.kind) {
    case HopKind::pcie: {
      const auto link = parts.link(hop.edge);
      return link ? to_string(*link) : "virtual";
    }
    case HopKind::root_complex: return "root complex";
    case HopKind::memory: return "memory";
    case HopKind::socket_link: {
      const auto& name = parts.cpu(hop.from).socket_link_name;
      return name ? name->value : "socket link";
    }
    case HopKind::nvlink: return "NVLink";
    case HopKind::wire: return "network";
  }
  return {};
}

std::vector<HopReport> hops_of(const Parts& parts, const Stage& stage, const StageSpec& spec) {
  std::vector<HopReport> hops;
  const double packets = std::ceil(stage.bytes.as_double() / spec.packet.as_double());
  const double on_link = stage.bytes.as_double() + packets * spec.units_per_packet;
  for (std::size_t i = 0; i < stage.data.size(); ++i) {
    const Hop& hop = stage.data[i];
    HopReport report;
    report.from = parts.graph().label(hop.from);
    report.to = parts.graph().label(hop.to);
    report.link = link_text(parts, hop);
    if (hop.kind == HopKind::pcie) report.bandwidth = parts.link_bandwidth(hop);
    if (hop.kind == HopKind::wire) {
      report.latency = hop.up ? parts.wire_latency() : Duration{};
      const VertexId nic = hop.up ? hop.from : hop.to;
      report.bandwidth = parts.graph().device_at(nic)->port_rate.value_or(parts.nic(nic).port_rate.value);
    } else {
      if (i == 0) report.latency += parts.crossing(stage.data, 0);
      report.latency += parts.crossing(stage.data, i + 1);
    }
    report.bytes = hop.kind == HopKind::pcie || hop.kind == HopKind::wire ? on_link : stage.bytes.as_double();
    hops.push_back(std::move(report));
  }
  return hops;
}

}  // namespace

Explanation explain(Simulator& simulator, const Parts& parts, const Transfer& transfer, const Options& options) {
  Explanation explanation;
  explanation.prediction = predict(simulator, parts, transfer, options);
  const TransferPlan plan = plan_transfer(parts.graph(), parts.models(), transfer);
  ScenarioBuilder alone(parts);
  alone.add(plan, {1, options.queue_pairs, 1, {}});
  const Scenario scenario = alone.take();
  const Outcome outcome = simulator.run(scenario);
  const FlowSpec& flow = scenario.flows.front();
  for (std::size_t i = 0; i < flow.stages.size(); ++i) {
    const StageSpec& spec = flow.stages[i];
    StageReport report;
    report.name = spec.name;
    report.times = outcome.flows.front().stages[i];
    report.latency = spec.latency;
    report.limit = spec.limit_name;
    if (spec.plan_stage != StageSpec::no_plan_stage) {
      const Stage& stage = plan.stages[spec.plan_stage];
      report.mover = stage.mover;
      report.from = parts.graph().label(stage.from);
      report.to = parts.graph().label(stage.to);
      report.bytes = stage.bytes;
      report.hops = hops_of(parts, stage, spec);
    }
    explanation.stages.push_back(std::move(report));
  }
  return explanation;
}

}  // namespace gdr::sim
