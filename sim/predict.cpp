#include "sim/predict.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/common/check.hpp"

namespace gdr::sim {
namespace {

/// Everything of a scenario that decides its outcome, without ids.
std::string fingerprint(const Scenario& scenario) {
  std::string key;
  const auto put = [&](auto value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    key.append(bytes, sizeof value);
  };
  put(scenario.extrapolate);
  put(scenario.record);
  put(scenario.resources.size());
  for (const Resource& resource : scenario.resources) put(resource.units_per_second);
  for (const FlowSpec& flow : scenario.flows) {
    put(flow.message.count);
    put(flow.messages);
    put(flow.start.seconds);
    put(flow.completion_stage);
    put(flow.completion_latency.seconds);
    put(flow.stages.size());
    for (const StageSpec& stage : flow.stages) {
      put(stage.resources.size());
      for (const std::size_t index : stage.resources) put(index);
      put(stage.request_resources.size());
      for (const std::size_t index : stage.request_resources) put(index);
      put(stage.granule.count);
      put(stage.whole_message);
      for (const double number :
           {stage.units_per_byte, stage.units_per_packet, stage.units_per_granule,
            stage.units_per_request, stage.limit, stage.setup.seconds, stage.latency.seconds})
        put(number);
      put(stage.packet.count);
      put(stage.request_packet.count);
    }
    put(flow.windows.size());
    for (const WindowSpec& window : flow.windows) {
      put(window.first);
      put(window.last);
      put(window.limit.count);
      put(window.return_latency.seconds);
      put(window.quantum.count);
      put(window.pieces);
    }
  }
  return key;
}

// The engine's work grows with flows times pieces. Among many flows, the first and last packet of
// one flow do not matter.
constexpr std::size_t many_flows = 16;
constexpr std::uint64_t granules_of_many = 256;
// Only the rate of a stream counts, and cutting a message into more pieces than this changes it by
// less than one part in this number.
constexpr std::uint64_t granules_of_stream = 512;

}  // namespace

Outcome Simulator::run_near(const Scenario& scenario) {
  for (const auto& [known, outcome] : near_)
    if (same_rate(known, outcome, scenario)) return outcome;
  near_.emplace_back(scenario, run(scenario));
  return near_.back().second;
}

Outcome Simulator::run(const Scenario& scenario) {
  ++asked_;
  const std::string key = fingerprint(scenario);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  Outcome outcome = engine_.run(scenario);
  transfers_ += outcome.transfers;
  known_.emplace(key, outcome);
  return outcome;
}

namespace {

Prediction describe(const TransferPlan& plan, const Costs& costs, Bandwidth bandwidth) {
  Prediction prediction;
  prediction.transfer = plan.transfer;
  prediction.bandwidth = bandwidth;
  prediction.cpu_cores = costs.cpu_seconds * bandwidth.bytes_per_second;
  prediction.host_memory_bytes_per_byte = costs.host_memory_passes;
  prediction.dram_bytes_per_byte = costs.dram_bytes;
  prediction.pcie_bytes_per_byte = costs.pcie_bytes;
  prediction.stages = plan.stages;
  return prediction;
}

/// The same transfer in the opposite direction, over the same NICs.
Transfer opposite(const TransferPlan& plan) {
  Transfer back = plan.transfer;
  std::swap(back.from, back.to);
  if (back.host_end != HostEnd::none)
    back.host_end = back.host_end == HostEnd::from ? HostEnd::to : HostEnd::from;
  back.via.clear();
  for (const auto& nic : {plan.from_nic, plan.to_nic})
    if (nic) back.via.push_back(*nic);
  return back;
}

}  // namespace

Prediction predict(Simulator& simulator, const Hardware& hardware, const Transfer& transfer,
                   const Options& options) {
  const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
  ScenarioBuilder alone(hardware);
  alone.add(plan, one_message);
  const Outcome single = simulator.run(alone.take());

  ScenarioBuilder stream(hardware);
  const Drive drive{.depth = options.depth,
                    .queue_pairs = options.queue_pairs,
                    .messages = 0,
                    .completion_every = options.completion_every};
  stream.add(plan, drive);
  if (options.bidirectional)
    stream.add(plan_transfer(hardware.graph(), hardware.models(), opposite(plan)), drive);
  const Costs costs = stream.costs().front();
  const Scenario scenario = stream.take();
  const Outcome steady = options.near ? simulator.run_near(scenario) : simulator.run(scenario);
  Bandwidth bandwidth;
  for (const FlowOutcome& flow : steady.flows)
    bandwidth.bytes_per_second += flow.rate.bytes_per_second;

  Prediction prediction = describe(plan, costs, bandwidth);
  prediction.latency = single.flows.front().first_arrival;
  prediction.completion = single.flows.front().first_completion;
  prediction.bottleneck = bottleneck(scenario, steady, 0);
  const FlowSpec& flow = scenario.flows.front();
  for (const WindowSpec& window : flow.windows)
    if (window.id.kind == WindowKind::queue_depth && prediction.bottleneck == Bottleneck(window.id))
      prediction.longest_step = longest_step(scenario, flow, window);
  return prediction;
}

MessageTimes predict_message(Simulator& simulator, const Hardware& hardware,
                             const Transfer& transfer) {
  ScenarioBuilder alone(hardware);
  alone.add(plan_transfer(hardware.graph(), hardware.models(), transfer), one_message);
  const Outcome outcome = simulator.run(alone.take());
  return {outcome.flows.front().first_arrival, outcome.flows.front().first_completion};
}

StreamRates predict_streams(Simulator& simulator, const Hardware& hardware,
                            const std::vector<Transfer>& transfers, const Options& options) {
  ScenarioBuilder builder(hardware);
  const Drive drive{
      .depth = options.depth,
      .queue_pairs = options.queue_pairs,
      .messages = 0,
      .completion_every = options.completion_every,
      .granules = transfers.size() > many_flows ? granules_of_many : granules_of_stream};
  for (const Transfer& transfer : transfers) {
    const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
    builder.add(plan, drive);
    if (options.bidirectional)
      builder.add(plan_transfer(hardware.graph(), hardware.models(), opposite(plan)), drive);
  }
  const Scenario scenario = builder.take();
  const Outcome outcome = options.near ? simulator.run_near(scenario) : simulator.run(scenario);
  StreamRates rates;
  rates.bottleneck = bottleneck(scenario, outcome, 0);
  const std::size_t per_transfer = options.bidirectional ? 2 : 1;
  rates.each.resize(transfers.size());
  for (std::size_t i = 0; i < outcome.flows.size(); ++i) {
    rates.each[i / per_transfer].bytes_per_second += outcome.flows[i].rate.bytes_per_second;
    rates.sum.bytes_per_second += outcome.flows[i].rate.bytes_per_second;
  }
  return rates;
}

std::vector<Prediction> predict_together(Simulator& simulator, const Hardware& hardware,
                                         const std::vector<TimedTransfer>& flows,
                                         const Options& options) {
  ScenarioBuilder builder(hardware);
  std::vector<TransferPlan> plans;
  for (const TimedTransfer& flow : flows) {
    plans.push_back(plan_transfer(hardware.graph(), hardware.models(), flow.transfer));
    builder.add(plans.back(), {.depth = options.depth,
                               .queue_pairs = options.queue_pairs,
                               .start = flow.start,
                               .completion_every = options.completion_every,
                               .granules = flows.size() > many_flows ? granules_of_many : 0});
  }
  const std::vector<Costs> costs = builder.costs();
  const Scenario scenario = builder.take();
  const Outcome outcome = simulator.run(scenario);
  std::vector<Prediction> predictions;
  for (std::size_t i = 0; i < flows.size(); ++i) {
    Prediction prediction = describe(plans[i], costs[i], outcome.flows[i].rate);
    prediction.latency = outcome.flows[i].first_arrival;
    prediction.completion = outcome.flows[i].first_completion;
    prediction.bottleneck = bottleneck(scenario, outcome, i);
    predictions.push_back(std::move(prediction));
  }
  return predictions;
}

}  // namespace gdr::sim
