#include "src/report/predict_range.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/output.hpp"

namespace gdr::cli {
namespace {

constexpr std::size_t most_estimates = 3;

std::vector<const sim::Range::Contribution*> estimates_of(const sim::Range& range) {
  std::vector<const sim::Range::Contribution*> list;
  for (const sim::Range::Contribution& part : range.contributions)
    if (part.estimate && list.size() < most_estimates) list.push_back(&part);
  return list;
}

std::string span(const sim::Range& range) {
  return fmt::format("{} to {}", short_number(range.low), short_number(range.high));
}

json::Value to_json(const sim::Range& range) {
  return json::Array{rounded(range.low), rounded(range.high)};
}

}  // namespace

PredictionRange range_of(sim::Simulator& simulator, const Hardware& hardware,
                         const Transfer& transfer, const sim::Options& options) {
  const TransferPlan plan = plan_transfer(hardware.graph(), hardware.models(), transfer);
  sim::Options near = options;
  near.near = true;
  auto ranges = sim::range_of(hardware, [&](const Hardware& other) {
    const sim::Prediction p = sim::predict(simulator, other, transfer, near);
    return std::vector<double>{p.latency.us(), p.bandwidth.gigabytes_per_second()};
  });
  PredictionRange range{std::move(ranges[0]), std::move(ranges[1])};
  // No error of the model lifts a rate above what the ports signal.
  for (const auto& nic : {plan.from_nic, plan.to_nic}) {
    if (!nic) continue;
    const Bandwidth port = hardware.port_rate(*nic);
    range.bandwidth.high = std::min(range.bandwidth.high,
                                    port.gigabytes_per_second() * (options.bidirectional ? 2 : 1));
  }
  return range;
}

std::string ranges_to_text(const std::vector<sim::Prediction>& predictions,
                           const std::vector<PredictionRange>& ranges) {
  std::vector<std::vector<std::string>> rows{
      {"  path", "size", "latency us", "range", "GB/s", "range"}};
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const sim::Prediction& p = predictions[i];
    rows.push_back({fmt::format("  {}", to_string(p.transfer.path)), to_string(p.transfer.size),
                    short_number(p.latency.us()), span(ranges[i].latency),
                    short_number(p.bandwidth.gigabytes_per_second()), span(ranges[i].bandwidth)});
  }
  std::string text = "\nRanges, from what is known of each parameter:\n" + table(rows);
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    if (i + 1 < predictions.size() &&
        predictions[i + 1].transfer.path == predictions[i].transfer.path)
      continue;
    std::string list;
    for (const sim::Range::Contribution* part : estimates_of(ranges[i].bandwidth))
      list += "    " +
              wrapped(fmt::format("{}: {} to {} GB/s", part->parameter, short_number(part->low),
                                  short_number(part->high)),
                      6, 74) +
              "\n";
    if (!list.empty())
      text += fmt::format("  estimates that move {} of {} most:\n{}",
                          to_string(predictions[i].transfer.path),
                          to_string(predictions[i].transfer.size), list);
  }
  return text;
}

void put_range(json::Value& result, const PredictionRange& range) {
  result.set("latency_range_us", to_json(range.latency));
  result.set("bandwidth_range_GBps", to_json(range.bandwidth));
  json::Array estimates;
  for (const sim::Range::Contribution* part : estimates_of(range.latency))
    estimates.emplace_back(part->parameter);
  for (const sim::Range::Contribution* part : estimates_of(range.bandwidth)) {
    const json::Value name(part->parameter);
    if (std::find(estimates.begin(), estimates.end(), name) == estimates.end())
      estimates.push_back(name);
  }
  result.set("estimates", std::move(estimates));
}

}  // namespace gdr::cli
