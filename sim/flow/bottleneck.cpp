#include "sim/flow/bottleneck.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace gdr::sim {
namespace {

struct Candidate {
  double use = 0;
  Bottleneck what;
};

void consider(Candidate& best, double use, const Bottleneck& what) {
  if (use > best.use * 1.0001) best = {use, what};
}

double granule_of(const FlowSpec& flow, const StageSpec& stage) {
  return static_cast<double>(
      stage.whole_message ? flow.message.count : std::min(stage.granule.count, flow.message.count));
}

}  // namespace

double units_per_byte(const FlowSpec& flow, const StageSpec& stage) {
  const double granule = granule_of(flow, stage);
  if (stage.whole_message) return stage.units_per_granule / granule;
  const double packets = std::ceil(granule / stage.packet.as_double());
  return stage.units_per_byte +
         (stage.units_per_packet * packets + stage.units_per_granule) / granule;
}

namespace {

/// Seconds that a stage is busy with `bytes` when no other stage uses its resources.
double busy_for(const Scenario& scenario, const FlowSpec& flow, const StageSpec& stage,
                double bytes) {
  double fastest = stage.limit;
  for (const std::size_t index : stage.resources) {
    const double capacity = scenario.resources[index].units_per_second;
    fastest = fastest > 0 ? std::min(fastest, capacity) : capacity;
  }
  const double work = fastest > 0 ? units_per_byte(flow, stage) * bytes / fastest : 0;
  return work + stage.setup.seconds * std::ceil(bytes / granule_of(flow, stage));
}

/// Bytes that come back to a window at once: a piece of its first stage, or whole messages.
double piece_of(const FlowSpec& flow, const WindowSpec& window) {
  return std::max(granule_of(flow, flow.stages[window.first]), window.quantum.as_double());
}

/// How much of the window is used at `rate`: rate x loop / bytes allowed. The loop is every latency
/// in it, each stage's time for one of its pieces, and the extra time of the slowest stage for all
/// that comes back at once (a bounce buffer is free only when all of it has been sent).
double window_use(const Scenario& scenario, const FlowSpec& flow, const WindowSpec& window,
                  double rate) {
  double loop = window.return_latency.seconds;
  double longest = 0;
  const double first = granule_of(flow, flow.stages[window.first]);
  const double piece = piece_of(flow, window);
  for (std::size_t s = window.first; s <= window.last; ++s) {
    const double own = busy_for(scenario, flow, flow.stages[s], granule_of(flow, flow.stages[s]));
    loop += flow.stages[s].latency.seconds + own;
    if (granule_of(flow, flow.stages[s]) < piece)
      longest = std::max(longest, busy_for(scenario, flow, flow.stages[s], piece) - own);
  }
  const double under_way = window.pieces > 0 ? first * static_cast<double>(window.pieces)
                                             : std::max(window.limit.as_double(), first);
  return rate * (loop + longest) / under_way;
}

/// The window that is used most.
Candidate tightest_window(const Scenario& scenario, const FlowSpec& flow, double rate) {
  Candidate tightest;
  for (const WindowSpec& window : flow.windows)
    consider(tightest, window_use(scenario, flow, window, rate), window.id);
  return tightest;
}

}  // namespace

Bottleneck bottleneck(const Scenario& scenario, const Outcome& outcome, std::size_t f) {
  std::vector<double> used(scenario.resources.size(), 0);
  for (std::size_t i = 0; i < scenario.flows.size(); ++i)
    for (const StageSpec& stage : scenario.flows[i].stages) {
      const double bytes = outcome.flows[i].rate.bytes_per_second;
      for (const std::size_t index : stage.resources)
        used[index] += bytes * units_per_byte(scenario.flows[i], stage);
      for (const std::size_t index : stage.request_resources)
        used[index] += bytes * stage.units_per_request / stage.request_packet.as_double();
    }
  const FlowSpec& flow = scenario.flows[f];
  const double rate = outcome.flows[f].rate.bytes_per_second;
  Candidate best;
  for (const StageSpec& stage : flow.stages) {
    for (const std::size_t index : stage.resources)
      consider(best, used[index] / scenario.resources[index].units_per_second,
               scenario.resources[index].id);
    if (stage.limit > 0)
      consider(best, units_per_byte(flow, stage) * rate / stage.limit, stage.limited_by);
    // A stage works on one piece at a time, so its set-up keeps it busy as well.
    const double granule = granule_of(flow, stage);
    if (stage.setup.seconds > 0)
      consider(best, busy_for(scenario, flow, stage, granule) * rate / granule, stage.step);
  }
  if (best.use > 0.97) return best.what;
  const Candidate window = tightest_window(scenario, flow, rate);
  return window.use > best.use ? window.what : best.what;
}

LongestStep longest_step(const Scenario& scenario, const FlowSpec& flow, const WindowSpec& window) {
  LongestStep longest;
  for (std::size_t s = window.first; s <= window.last; ++s) {
    const StageSpec& stage = flow.stages[s];
    const Duration time =
        stage.latency +
        Duration{busy_for(scenario, flow, stage,
                          std::max(granule_of(flow, stage), piece_of(flow, window)))};
    if (time > longest.time) longest = {stage.step, time};
  }
  return longest;
}

namespace {

bool same_shape(const FlowSpec& a, const FlowSpec& b) {
  if (a.message != b.message || a.messages != 0 || b.messages != 0 ||
      a.stages.size() != b.stages.size() || a.windows.size() != b.windows.size())
    return false;
  for (std::size_t i = 0; i < a.stages.size(); ++i) {
    const StageSpec& x = a.stages[i];
    const StageSpec& y = b.stages[i];
    if (x.resources != y.resources || x.request_resources != y.request_resources ||
        x.granule != y.granule || x.whole_message != y.whole_message ||
        (x.limit > 0) != (y.limit > 0))
      return false;
  }
  for (std::size_t i = 0; i < a.windows.size(); ++i)
    if (a.windows[i].first != b.windows[i].first || a.windows[i].last != b.windows[i].last ||
        a.windows[i].quantum != b.windows[i].quantum)
      return false;
  return true;
}

/// The share of its time that each resource, own limit and stage is busy at a rate. Scenarios of
/// one shape have the same order.
std::vector<double> uses(const Scenario& scenario, double rate) {
  const FlowSpec& flow = scenario.flows.front();
  std::vector<double> list(scenario.resources.size(), 0);
  for (const StageSpec& stage : flow.stages) {
    for (const std::size_t index : stage.resources)
      list[index] +=
          rate * units_per_byte(flow, stage) / scenario.resources[index].units_per_second;
    for (const std::size_t index : stage.request_resources)
      list[index] += rate * stage.units_per_request / stage.request_packet.as_double() /
                     scenario.resources[index].units_per_second;
  }
  for (const StageSpec& stage : flow.stages) {
    list.push_back(stage.limit > 0 ? rate * units_per_byte(flow, stage) / stage.limit : 0);
    const double granule = granule_of(flow, stage);
    list.push_back(rate * busy_for(scenario, flow, stage, granule) / granule);
  }
  return list;
}

}  // namespace

bool same_rate(const Scenario& known, const Outcome& outcome, const Scenario& other) {
  // A use below these, of a resource or a window, does not change the rate that another bottleneck
  // sets.
  constexpr double saturated = 0.985;
  constexpr double slack = 0.75;
  constexpr double slack_of_window = 0.6;
  if (known.flows.size() != 1 || other.flows.size() != 1 ||
      known.resources.size() != other.resources.size())
    return false;
  const FlowSpec& a = known.flows.front();
  const FlowSpec& b = other.flows.front();
  if (!same_shape(a, b)) return false;
  const double rate = outcome.flows.front().rate.bytes_per_second;
  const std::vector<double> before = uses(known, rate);
  const std::vector<double> after = uses(other, rate);
  bool bound = false;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const bool same = std::abs(after[i] - before[i]) <= 1e-9 * before[i];
    bound = bound || (same && before[i] >= saturated);
    if (!same && after[i] > std::max(slack, before[i])) return false;
  }
  for (std::size_t i = 0; i < a.windows.size(); ++i) {
    const double loop = window_use(other, b, b.windows[i], rate);
    if (loop > std::max(slack_of_window, window_use(known, a, a.windows[i], rate) * (1 + 1e-9)))
      return false;
  }
  return bound;
}

}  // namespace gdr::sim
