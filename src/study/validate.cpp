#include "src/study/validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "src/common/error.hpp"
#include "src/study/ask.hpp"
#include "src/study/range.hpp"

namespace gdr::study {
namespace {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (at - static_cast<double>(below));
}

/// The flows of a case, with the NICs that the verdict chooses. Throws InputError with the reason
/// where it blocks a flow: a blocked flow cannot have been measured on this machine.
std::vector<Transfer> admitted(const Graph& graph, const ModelLibrary& models,
                               const Verdict& verdict, const PublishedCase& published) {
  const Topology& topology = graph.topology();
  std::vector<Transfer> transfers;
  for (const PublishedCase::Flow& flow : published.flows) {
    Transfer transfer = published.transfer;
    set_ends(topology, find_end(topology, flow.from), find_end(topology, flow.to), transfer);
    for (const std::string& nic : flow.via) transfer.via.push_back(find_device(topology, nic));
    Admission admission = admit(graph, models, verdict, transfer);
    if (admission.refusal) throw InputError(reason_of(*admission.refusal, verdict));
    transfers.push_back(std::move(admission.transfer));
  }
  return transfers;
}

/// Topologies are read once for all cases that share file and settings.
class Topologies {
 public:
  struct Read {
    Read(Topology t, const ModelLibrary& models)
        : topology(std::move(t)),
          graph(topology),
          hardware(graph, models),
          verdict(judge(graph, models)) {}
    Topology topology;
    Graph graph;
    Hardware hardware;
    Verdict verdict;
  };
  explicit Topologies(const ModelLibrary& models) : models_(models) {}
  std::shared_ptr<const Read> get(const PublishedCase& published) {
    std::string key = published.topology;
    for (const Setting& setting : published.settings)
      key += " " + setting.key + "=" + setting.value;
    auto& read = known_[key];
    if (!read)
      read = std::make_shared<const Read>(load_topology(published.topology, published.settings),
                                          models_);
    return read;
  }

 private:
  const ModelLibrary& models_;
  std::map<std::string, std::shared_ptr<const Read>> known_;
};

}  // namespace

Errors errors_of(const std::vector<const CaseResult*>& results) {
  Errors errors;
  errors.count = results.size();
  std::vector<double> absolute;
  std::vector<double> ranges;
  double inside = 0;
  for (const CaseResult* result : results) {
    absolute.push_back(std::abs(result->error()));
    inside += result->in_range() ? 1 : 0;
    if (result->low > 0) ranges.push_back(result->high / result->low);
  }
  errors.median = quantile(absolute, 0.5);
  errors.percentile90 = quantile(absolute, 0.9);
  errors.in_range = results.empty() ? 0 : inside / static_cast<double>(results.size());
  errors.range = quantile(ranges, 0.5);
  return errors;
}

namespace {

/// The prediction in the case's unit, with the models of `hardware`.
double predicted(sim::Simulator& simulator, const Hardware& hardware,
                 const PublishedCase& published, const std::vector<Transfer>& transfers,
                 sim::Bottleneck* bottleneck, bool near) {
  sim::Options options = published.options;
  options.near = near;
  if (published.metric == Metric::latency || published.metric == Metric::completion ||
      published.metric == Metric::round_trip) {
    const sim::MessageTimes times = sim::predict_message(simulator, hardware, transfers.front());
    if (published.metric == Metric::completion) return times.completion.us();
    return times.latency.us() * (published.metric == Metric::round_trip ? 2 : 1);
  }
  if (published.metric == Metric::bandwidth_to_the_end) {
    std::vector<sim::TimedTransfer> timed;
    for (const Transfer& transfer : transfers) timed.push_back({transfer, {}});
    double last_s = 0;
    for (const sim::Prediction& one : sim::predict_together(simulator, hardware, timed, options))
      last_s = std::max(last_s, one.latency.seconds);
    return published.transfer.size.as_double() * static_cast<double>(transfers.size()) / last_s /
           1e9;
  }
  const sim::StreamRates rates = sim::predict_streams(simulator, hardware, transfers, options);
  if (bottleneck != nullptr) *bottleneck = rates.bottleneck;
  const double sum = rates.sum.gigabytes_per_second();
  if (published.metric == Metric::bandwidth_each_way) return sum / 2;
  if (published.metric == Metric::loaded_latency)
    return static_cast<double>(published.options.depth) * static_cast<double>(transfers.size()) *
           published.transfer.size.as_double() / (sum * 1e3);
  return sum;
}

CaseResult run_case(sim::Simulator& simulator, const PublishedCase& published,
                    const std::shared_ptr<const Topologies::Read>& read, bool ranges) {
  CaseResult result;
  result.published = &published;
  const Hardware& hardware = read->hardware;
  result.hardware = {read, &hardware};
  const std::vector<Transfer> transfers =
      admitted(read->graph, hardware.models(), read->verdict, published);
  result.predicted =
      predicted(simulator, hardware, published, transfers, &result.bottleneck, false);
  if (!ranges) return result;
  const Range range = range_of(hardware, [&](const Hardware& other) {
                        return std::vector<double>{
                            predicted(simulator, other, published, transfers, nullptr, true)};
                      }).front();
  result.low = range.low;
  result.high = range.high;
  for (const Range::Contribution& part : range.contributions)
    if (part.estimate && result.estimates.size() < 3)
      result.estimates.push_back(
          fmt::format("{}: {:.4g} to {:.4g}", part.parameter, part.low, part.high));
  return result;
}

}  // namespace

std::vector<CaseResult> run_published(sim::Simulator& simulator, const ModelLibrary& models,
                                      const std::vector<PublishedCase>& cases, bool ranges,
                                      const std::function<void()>& after_each) {
  std::vector<CaseResult> results;
  Topologies topologies(models);
  for (const PublishedCase& published : cases) {
    try {
      results.push_back(run_case(simulator, published, topologies.get(published), ranges));
    } catch (const InputError& error) {
      throw InputError(
          fmt::format("{}: case {}: {}", published.file, published.name, error.what()));
    }
    after_each();
  }
  return results;
}

}  // namespace gdr::study
