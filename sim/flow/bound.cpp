#include "sim/flow/bound.hpp"

#include "sim/flow/bottleneck.hpp"
#include "sim/flow/build.hpp"

namespace gdr::sim {
namespace {

using namespace gdr::literals;

void consider(StageBound& least, double units_per_second, double units_per_byte,
              const Bottleneck& what) {
  if (units_per_byte <= 0) return;
  const Bandwidth payload{units_per_second / units_per_byte};
  if (least.by == Bottleneck() || payload < least.bandwidth) least = {payload, what};
}

StageBound own_limit(const FlowSpec& flow, const StageSpec& stage) {
  StageBound least;
  if (stage.limit > 0) consider(least, stage.limit, units_per_byte(flow, stage), stage.limited_by);
  return least;
}

bool is_hop(ResourceKind kind) {
  return kind == ResourceKind::link || kind == ResourceKind::port || kind == ResourceKind::memory ||
         kind == ResourceKind::root_complex;
}

}  // namespace

StageBound bound_of(const Scenario& scenario, const FlowSpec& flow, const StageSpec& stage) {
  StageBound least = own_limit(flow, stage);
  std::vector<double> units(scenario.resources.size(), 0);
  for (const std::size_t index : stage.resources) units[index] += units_per_byte(flow, stage);
  for (const std::size_t index : stage.request_resources)
    units[index] += stage.units_per_request / stage.request_packet.as_double();
  for (std::size_t i = 0; i < units.size(); ++i)
    consider(least, scenario.resources[i].units_per_second, units[i], scenario.resources[i].id);
  return least;
}

StageBound bound_beside_links(const Scenario& scenario, const FlowSpec& flow,
                              const StageSpec& stage) {
  StageBound least = own_limit(flow, stage);
  for (const std::size_t index : stage.resources)
    if (const Resource& resource = scenario.resources[index]; !is_hop(resource.id.kind))
      consider(least, resource.units_per_second, units_per_byte(flow, stage), resource.id);
  return least;
}

StageBound bound_of_pair(const Hardware& hardware, DeviceId initiator, DeviceId target,
                         bool reads) {
  constexpr Bytes large = 64_MiB;
  ScenarioBuilder builder(hardware);
  builder.add(plan_access(hardware.graph(), hardware.models(), initiator, target, reads, large),
              {.messages = 0});
  const Scenario scenario = builder.take();
  const FlowSpec& flow = scenario.flows.front();
  return bound_of(scenario, flow, flow.stages.back());
}

}  // namespace gdr::sim
