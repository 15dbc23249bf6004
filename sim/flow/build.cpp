#include "sim/flow/build.hpp"

#include <fmt/format.h>

#include "sim/flow/flow_builder.hpp"
#include "src/common/check.hpp"

namespace gdr::sim {

std::size_t ScenarioBuilder::resource(const std::string& name, Bandwidth capacity, bool payload) {
  const auto [at, added] = index_.emplace(name, resources_.size());
  if (added) resources_.push_back({name, capacity.bytes_per_second, payload, 0, 0});
  return at->second;
}

/// A NIC's message pipeline is worth one second a second, counted in nanoseconds.
std::size_t ScenarioBuilder::pipeline(const std::string& name) {
  return resource(name, {1e9}, false);
}

void ScenarioBuilder::add(const TransferPlan& plan, const Drive& drive) {
  check(drive.depth > 0 && drive.queue_pairs > 0, "a transfer without depth or queue pairs");
  FlowBuilder(*this, plan, drive).build();
}

/// Some root complexes slow down when several devices below one root port write to several others
/// at once.
void ScenarioBuilder::limit_fan_out() {
  for (const auto& [port, fan_out] : fan_outs_) {
    if (fan_out.engines.size() < 2 || fan_out.ports.size() < 2) continue;
    const std::size_t shared = resource(
        fmt::format("peer writes of {} to several root ports", port), fan_out.bandwidth, true);
    for (const FanOut::Use& use : fan_out.uses) {
      flows_[use.flow].stages[use.stage].resources.push_back(shared);
      resources_[shared].units += use.units_per_byte * use.bytes;
      resources_[shared].bytes += use.bytes;
    }
  }
}

Scenario ScenarioBuilder::take() {
  limit_fan_out();
  Scenario scenario;
  for (const Shared& shared : resources_) {
    // Where capacity counts payload and stages count wire bytes, the capacity grows by their mean
    // share of headers. Exact when all flows have the same, as between equal devices.
    const double units = shared.payload && shared.bytes > 0 ? shared.units / shared.bytes : 1;
    scenario.resources.push_back(
        {shared.name, shared.capacity * units, Bandwidth{shared.capacity}});
  }
  scenario.flows = std::move(flows_);
  return scenario;
}

}  // namespace gdr::sim
