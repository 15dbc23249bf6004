#include "src/verdict/verdict_json.hpp"

#include <cmath>

namespace gdr {
namespace {

/// GB/s to three decimal places, the most that is meaningful here.
json::Value bandwidth_json(const std::optional<Bandwidth>& bandwidth) {
  if (!bandwidth) return nullptr;
  return std::round(bandwidth->gigabytes_per_second() * 1000) / 1000;
}

json::Value pair_json(const Pair& pair) {
  json::Value value;
  value.set("kind", to_string(pair.kind));
  value.set("from", pair.from);
  value.set("to", pair.to);
  value.set("distance", pair.distance);
  value.set("nccl_distance", pair.nccl_distance);
  value.set("route", to_string(pair.route));
  value.set("redirected", pair.redirected ? json::Value(*pair.redirected) : json::Value(nullptr));
  value.set("kernel_p2pdma", to_string(pair.kernel_p2pdma));
  value.set("verdict", to_string(pair.answer));
  value.set("read_GBps", bandwidth_json(pair.bandwidth.read));
  value.set("write_GBps", bandwidth_json(pair.bandwidth.write));
  value.set("findings", json::Array(pair.findings.begin(), pair.findings.end()));
  return value;
}

}  // namespace

json::Value to_json(const Verdict& verdict, const std::string& topology_name) {
  json::Array pairs;
  for (const Pair& pair : verdict.pairs) pairs.push_back(pair_json(pair));
  json::Array findings;
  for (const Finding& finding : verdict.findings) {
    json::Value value;
    value.set("rule", finding.rule);
    value.set("severity", to_string(finding.severity));
    value.set("where", finding.where);
    value.set("message", finding.message);
    value.set("remedy", finding.remedy);
    json::Array concerned;
    for (const std::size_t pair : finding.pairs)
      concerned.emplace_back(static_cast<std::int64_t>(pair));
    value.set("pairs", std::move(concerned));
    findings.push_back(std::move(value));
  }
  json::Value value;
  value.set("format", 1);
  value.set("topology", topology_name);
  value.set("pairs", std::move(pairs));
  json::Array best;
  for (const BestPair& one : verdict.best) {
    const Pair& pair = verdict.pairs.at(one.pair);
    json::Value row;
    row.set("gpu", one.gpu);
    row.set("nic", pair.to);
    row.set("verdict", to_string(pair.answer));
    best.push_back(std::move(row));
  }
  value.set("best", std::move(best));
  value.set("findings", std::move(findings));
  return value;
}

}  // namespace gdr
