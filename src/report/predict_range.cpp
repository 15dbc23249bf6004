#include "src/report/predict_range.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/output.hpp"

namespace gdr::report {
namespace {

constexpr std::size_t most_estimates = 3;

std::vector<const study::Range::Contribution*> estimates_of(const study::Range& range) {
  std::vector<const study::Range::Contribution*> list;
  for (const study::Range::Contribution& part : range.contributions)
    if (part.estimate && list.size() < most_estimates) list.push_back(&part);
  return list;
}

std::string span(const study::Range& range) {
  return fmt::format("{} to {}", short_number(range.low), short_number(range.high));
}

json::Value to_json(const study::Range& range) {
  return json::Array{rounded(range.low), rounded(range.high)};
}

}  // namespace

std::string ranges_to_text(const std::vector<study::Answer>& answers) {
  std::vector<std::vector<std::string>> rows{
      {"  path", "size", "latency us", "range", "GB/s", "range"}};
  for (const study::Answer& answer : answers) {
    const sim::Prediction& p = *answer.prediction();
    rows.push_back({fmt::format("  {}", to_string(p.transfer.path)), to_string(p.transfer.size),
                    short_number(p.latency.us()), span(answer.range->latency),
                    short_number(p.bandwidth.gigabytes_per_second()),
                    span(answer.range->bandwidth)});
  }
  std::string text = "\nRanges, from what is known of each parameter:\n" + table(rows);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const Transfer& transfer = answers[i].admission.transfer;
    if (i + 1 < answers.size() && answers[i + 1].admission.transfer.path == transfer.path) continue;
    std::string list;
    for (const study::Range::Contribution* part : estimates_of(answers[i].range->bandwidth))
      list += "    " +
              wrapped(fmt::format("{}: {} to {} GB/s", part->parameter, short_number(part->low),
                                  short_number(part->high)),
                      6, 74) +
              "\n";
    if (!list.empty())
      text += fmt::format("  estimates that move {} of {} most:\n{}", to_string(transfer.path),
                          to_string(transfer.size), list);
  }
  return text;
}

void put_range(json::Value& result, const study::PredictionRange& range) {
  result.set("latency_range_us", to_json(range.latency));
  result.set("bandwidth_range_GBps", to_json(range.bandwidth));
  json::Array estimates;
  for (const study::Range::Contribution* part : estimates_of(range.latency))
    estimates.emplace_back(part->parameter);
  for (const study::Range::Contribution* part : estimates_of(range.bandwidth)) {
    const json::Value name(part->parameter);
    if (std::find(estimates.begin(), estimates.end(), name) == estimates.end())
      estimates.push_back(name);
  }
  result.set("estimates", std::move(estimates));
}

}  // namespace gdr::report
