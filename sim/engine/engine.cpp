#include "sim/engine/engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "sim/engine/fluid.hpp"
#include "sim/engine/steady.hpp"
#include "sim/engine/windows.hpp"
#include "src/common/check.hpp"
#include "src/common/error.hpp"

// A piece in a stage is one transfer over the links of the stage's resources. Whatever ends (a
// transfer, a latency, a window's return) starts what has become possible; nothing polls.

namespace gdr::sim {
namespace {

constexpr double steady_tolerance = 1e-4;

/// Counts in bytes since the flow's start, over all its messages.
struct StageState {
  std::uint64_t started = 0;
  std::uint64_t arrived = 0;  // at the next stage
  StageTimes times;
  bool busy = false;
  double taken_s = 0;  // when it took the piece that it works on
  std::vector<Fluid::Link> links;
  std::vector<Fluid::Link> request_links;
};

struct WindowState {
  std::uint64_t arrived = 0;
  [[nodiscard]] std::uint64_t returned(const WindowSpec& window) const {
    return window.quantum.count == 0 ? arrived : arrived - arrived % window.quantum.count;
  }
};

struct FlowState {
  const FlowSpec* spec = nullptr;
  std::vector<StageState> stages;
  std::vector<WindowState> windows;
  std::uint64_t total = 0;  // bytes; endless: max
  bool begun = false;
  bool done = false;
  bool first_arrived = false;
  std::uint64_t unit = 0;  // skips are whole multiples of this
  std::size_t front = 0;   // the first stage that works piece by piece
  SteadyRate rate{1, steady_tolerance};
  FlowOutcome outcome;
};

/// A piece on its way through a stage; the token of its transfers is its index in `pieces`.
struct Piece {
  std::size_t flow = 0;
  std::size_t stage = 0;
  std::uint64_t bytes = 0;
  int waiting = 0;  // transfers of the piece that are not done; 0: the entry is free
};

}  // namespace

struct Engine::Impl {
  Outcome run(const Scenario& given);

  void prepare(const Scenario& given);
  void begin(std::size_t f);
  void advance(std::size_t f, std::size_t stage);
  [[nodiscard]] std::uint64_t next_granule(const FlowState& flow, std::size_t stage) const;
  [[nodiscard]] bool window_open(const FlowState& flow, std::size_t stage,
                                 std::uint64_t bytes) const;
  void send(std::size_t f, std::size_t stage, std::uint64_t bytes);
  void on_done(std::uint64_t token);
  void sent(std::size_t f, std::size_t stage, std::uint64_t bytes);
  void arrive(std::size_t f, std::size_t stage, std::uint64_t bytes);
  void message_progress(FlowState& flow, std::size_t stage);
  void after(Duration delay, std::function<void()> action);
  void consider_skip();
  void skip(double seconds);
  void finish_endless_if_steady();
  [[nodiscard]] double now() const { return fluid.now() - origin + skipped; }

  Fluid fluid{[this](std::uint64_t token) { on_done(token); }};
  std::vector<Piece> pieces;
  std::vector<std::uint64_t> free_pieces;

  const Scenario* scenario = nullptr;
  std::vector<FlowState> flows;
  Outcome outcome;
  double origin = 0;
  double skipped = 0;
  bool stopping = false;
  std::uint64_t run_number = 0;
};

namespace {

/// Units per second that spread requests over the time that their data takes alone. Sent in one
/// burst, requests would take the data's share of a link that both cross (after an ACS redirect),
/// and data that is limited elsewhere could not catch up.
double request_pace(const Scenario& scenario, const StageSpec& stage, Bytes message) {
  double fastest = stage.limit > 0 ? stage.limit : std::numeric_limits<double>::max();
  for (const std::size_t index : stage.resources) {
    const auto times =
        static_cast<double>(std::count(stage.resources.begin(), stage.resources.end(), index));
    fastest = std::min(fastest, scenario.resources.at(index).units_per_second / times);
  }
  const double bytes = std::min(stage.granule, message).as_double();
  const double data_units = stage.units_per_byte * bytes +
                            stage.units_per_packet * std::ceil(bytes / stage.packet.as_double());
  return fastest * stage.units_per_request * std::ceil(bytes / stage.request_packet.as_double()) /
         data_units;
}

}  // namespace

void Engine::Impl::prepare(const Scenario& given) {
  scenario = &given;
  flows.clear();
  outcome = {};
  pieces.clear();
  free_pieces.clear();
  skipped = 0;
  stopping = false;
  ++run_number;
  origin = fluid.now();
  std::size_t used = 0;
  const auto take = [&](double units_per_second) {
    if (used == Fluid::links())
      throw InputError(fmt::format(
          "the scenario needs more than {} links and stages; ask for fewer flows at once",
          Fluid::links()));
    const auto link = static_cast<Fluid::Link>(used++);
    fluid.set_capacity(link, units_per_second);
    return link;
  };
  std::vector<Fluid::Link> shared;
  for (const Resource& resource : given.resources)
    shared.push_back(take(resource.units_per_second));
  for (const FlowSpec& spec : given.flows) {
    check(!spec.stages.empty() && spec.message.count > 0, "a flow without stages or bytes");
    FlowState& flow = flows.emplace_back();
    flow.spec = &spec;
    flow.total = spec.messages == 0 ? std::numeric_limits<std::uint64_t>::max()
                                    : spec.message.count * spec.messages;
    flow.windows.resize(spec.windows.size());
    flow.unit = 1;
    for (const StageSpec& stage : spec.stages)
      if (!stage.whole_message)
        flow.unit = std::max(flow.unit, std::min(stage.granule.count, spec.message.count));
    // A block is a whole number of periods, so that each block holds the same pattern.
    const std::uint64_t period = period_of(spec, flow.unit);
    flow.rate = SteadyRate(period * ((flow.unit * 8 + period - 1) / period), steady_tolerance);
    if (spec.messages > 1)
      flow.unit = spec.message.count;  // a skip must not move the ends of messages
    while (spec.messages == 1 && flow.front + 1 < spec.stages.size() &&
           spec.stages[flow.front].whole_message)
      ++flow.front;
    for (const StageSpec& stage : spec.stages) {
      StageState& state = flow.stages.emplace_back();
      for (const std::size_t index : stage.resources) state.links.push_back(shared.at(index));
      if (stage.limit > 0) state.links.push_back(take(stage.limit));
      for (const std::size_t index : stage.request_resources)
        state.request_links.push_back(shared.at(index));
      if (!state.request_links.empty() && !state.links.empty() && stage.units_per_request > 0)
        state.request_links.push_back(take(request_pace(given, stage, spec.message)));
    }
  }
}

void Engine::Impl::after(Duration delay, std::function<void()> action) {
  if (delay.seconds <= 0) {
    action();
    return;
  }
  fluid.after(delay.seconds, [this, run = run_number, action = std::move(action)] {
    if (run == run_number) action();
  });
}

void Engine::Impl::begin(std::size_t f) {
  FlowState& flow = flows[f];
  if (flow.begun) return;
  flow.begun = true;
  for (FlowState& other : flows) other.rate.restart(now(), other.stages.back().arrived);
  advance(f, 0);
}

/// Bytes of the piece that a stage would take next; 0 when it has not arrived yet.
std::uint64_t Engine::Impl::next_granule(const FlowState& flow, std::size_t stage) const {
  const StageState& state = flow.stages[stage];
  const StageSpec& spec = flow.spec->stages[stage];
  if (state.started >= flow.total) return 0;
  const std::uint64_t message = flow.spec->message.count;
  const std::uint64_t rest = message - state.started % message;
  const std::uint64_t bytes = spec.whole_message ? rest : std::min(rest, spec.granule.count);
  const std::uint64_t available = stage == 0 ? flow.total : flow.stages[stage - 1].arrived;
  return available - state.started >= bytes ? bytes : 0;
}

bool Engine::Impl::window_open(const FlowState& flow, std::size_t stage,
                               std::uint64_t bytes) const {
  for (std::size_t w = 0; w < flow.windows.size(); ++w) {
    const WindowSpec& window = flow.spec->windows[w];
    if (window.first != stage) continue;
    const std::uint64_t started = flow.stages[stage].started;
    const std::uint64_t returned = flow.windows[w].returned(window);
    if (window.pieces > 0) {
      if (pieces_begun(*flow.spec, stage, started) - pieces_done(*flow.spec, stage, returned) >=
          window.pieces)
        return false;
      continue;
    }
    const std::uint64_t under_way = started - returned;
    if (under_way > 0 && under_way + bytes > window.limit.count) return false;
  }
  return true;
}

/// Starts what the stage can start.
void Engine::Impl::advance(std::size_t f, std::size_t stage) {
  FlowState& flow = flows[f];
  if (stopping || flow.done || !flow.begun) return;
  StageState& state = flow.stages[stage];
  while (!state.busy) {
    const std::uint64_t bytes = next_granule(flow, stage);
    if (bytes == 0 || !window_open(flow, stage, bytes)) return;
    state.busy = true;
    state.taken_s = now();
    if (state.started == 0) state.times.begin = Duration{now()} - flow.spec->start;
    state.started += bytes;
    ++outcome.transfers;
    after(flow.spec->stages[stage].setup, [this, f, stage, bytes] { send(f, stage, bytes); });
  }
}

void Engine::Impl::send(std::size_t f, std::size_t stage, std::uint64_t bytes) {
  const StageState& state = flows[f].stages[stage];
  const StageSpec& spec = flows[f].spec->stages[stage];
  const double packets = std::ceil(static_cast<double>(bytes) / spec.packet.as_double());
  const double units = (spec.whole_message ? 0
                                           : spec.units_per_byte * static_cast<double>(bytes) +
                                                 spec.units_per_packet * packets) +
                       spec.units_per_granule;
  if (state.links.empty() || units <= 0) {
    sent(f, stage, bytes);
    return;
  }
  const bool requests = !state.request_links.empty() && spec.units_per_request > 0;
  if (free_pieces.empty()) {
    free_pieces.push_back(pieces.size());
    pieces.emplace_back();
  }
  const std::uint64_t token = free_pieces.back();
  free_pieces.pop_back();
  pieces[token] = {f, stage, bytes, requests ? 2 : 1};
  fluid.start(state.links, units, token);
  if (requests)
    fluid.start(state.request_links,
                spec.units_per_request *
                    std::ceil(static_cast<double>(bytes) / spec.request_packet.as_double()),
                token);
}

void Engine::Impl::on_done(std::uint64_t token) {
  if (--pieces[token].waiting > 0) return;
  const Piece piece = pieces[token];
  free_pieces.push_back(token);
  sent(piece.flow, piece.stage, piece.bytes);
}

void Engine::Impl::sent(std::size_t f, std::size_t stage, std::uint64_t bytes) {
  FlowState& flow = flows[f];
  flow.stages[stage].busy = false;
  if (scenario->record)
    outcome.spans.push_back(
        {f, stage, Bytes{bytes}, Duration{flow.stages[stage].taken_s}, Duration{now()}});
  after(flow.spec->stages[stage].latency, [this, f, stage, bytes] { arrive(f, stage, bytes); });
  advance(f, stage);
}

void Engine::Impl::arrive(std::size_t f, std::size_t stage, std::uint64_t bytes) {
  FlowState& flow = flows[f];
  flow.stages[stage].arrived += bytes;
  for (std::size_t w = 0; w < flow.windows.size(); ++w) {
    const WindowSpec& window = flow.spec->windows[w];
    if (window.last != stage) continue;
    after(window.return_latency, [this, f, w, bytes, first = window.first] {
      flows[f].windows[w].arrived += bytes;
      advance(f, first);
    });
  }
  message_progress(flow, stage);
  if (stage + 1 < flow.stages.size()) advance(f, stage + 1);
}

/// First arrival and completion, the end of a finite flow, the steady state.
void Engine::Impl::message_progress(FlowState& flow, std::size_t stage) {
  const double t = now();
  const std::uint64_t arrived = flow.stages[stage].arrived;
  const std::uint64_t first = flow.spec->message.count;
  if (arrived >= first && flow.stages[stage].times.end.seconds == 0)
    flow.stages[stage].times.end = Duration{t} - flow.spec->start;
  if (stage == flow.spec->completion_stage && arrived >= first &&
      flow.outcome.first_completion.seconds == 0)
    flow.outcome.first_completion = Duration{t} - flow.spec->start + flow.spec->completion_latency;
  if (stage + 1 != flow.stages.size()) return;
  if (arrived >= first && !flow.first_arrived) {
    flow.first_arrived = true;
    flow.outcome.first_arrival = Duration{t} - flow.spec->start;
  }
  flow.rate.add(t, arrived);
  if (arrived >= flow.total) {
    flow.done = true;
    flow.outcome.finish = {t};
    for (FlowState& other : flows) other.rate.restart(t, other.stages.back().arrived);
  }
  finish_endless_if_steady();
  consider_skip();
}

/// Endless flows end the run once all of them are steady and every finite one is done.
void Engine::Impl::finish_endless_if_steady() {
  if (stopping) return;
  bool endless = false;
  for (const FlowState& flow : flows) {
    if (flow.spec->messages != 0) {
      if (!flow.done) return;
      continue;
    }
    endless = true;
    if (!flow.rate.steady()) return;
  }
  if (!endless) return;
  for (FlowState& flow : flows)
    if (flow.spec->messages == 0) {
      flow.outcome.steady = true;
      flow.outcome.rate = {flow.rate.rate()};
    }
  stopping = true;
}

/// When every running flow is steady, nothing changes until one begins or ends: jump there.
void Engine::Impl::consider_skip() {
  if (!scenario->extrapolate || stopping) return;
  double jump = std::numeric_limits<double>::infinity();
  for (const FlowState& flow : flows) {
    if (flow.done) continue;
    if (!flow.begun) {
      jump = std::min(jump, flow.spec->start.seconds - now());
      continue;
    }
    if (flow.spec->messages == 0) return;  // endless flows stop by themselves
    if (!flow.rate.steady()) return;
    // What is under way and one more unit run for real.
    const std::uint64_t started = flow.stages[flow.front].started;
    const std::uint64_t margin = flow.unit;
    if (flow.total < started + margin + flow.unit) return;
    jump = std::min(jump, static_cast<double>(flow.total - started - margin) / flow.rate.rate());
  }
  if (std::isfinite(jump)) skip(jump);
}

void Engine::Impl::skip(double seconds) {
  // Each flow must skip whole units; a jump of less than four units of any flow is not worth it.
  for (const FlowState& flow : flows)
    if (flow.begun && !flow.done && flow.rate.rate() * seconds < static_cast<double>(flow.unit) * 4)
      return;
  // The jump is a whole number of units of the flow whose units take longest; the others round to
  // theirs.
  double longest = 0;
  for (const FlowState& flow : flows)
    if (flow.begun && !flow.done)
      longest = std::max(longest, static_cast<double>(flow.unit) / flow.rate.rate());
  seconds = std::floor(seconds / longest) * longest;
  skipped += seconds;
  for (FlowState& flow : flows) {
    if (!flow.begun || flow.done) continue;
    const auto units = static_cast<std::uint64_t>(
        std::llround(flow.rate.rate() * seconds / static_cast<double>(flow.unit)));
    const std::uint64_t bytes = units * flow.unit;
    for (std::size_t s = flow.front; s < flow.stages.size(); ++s) {
      flow.stages[s].started += bytes;
      flow.stages[s].arrived += bytes;
    }
    for (WindowState& window : flow.windows) window.arrived += bytes;
    outcome.extrapolated += bytes / flow.spec->stages.back().granule.count;
    flow.outcome.steady = true;
    flow.rate.restart(now(), flow.stages.back().arrived);
  }
  for (std::size_t f = 0; f < flows.size(); ++f)
    if (!flows[f].begun) {
      const double delay = std::max(0.0, flows[f].spec->start.seconds - now());
      if (delay <= 0) begin(f);
      else after({delay}, [this, f] { begin(f); });
    }
}

Outcome Engine::Impl::run(const Scenario& given) {
  prepare(given);
  for (std::size_t f = 0; f < flows.size(); ++f)
    if (flows[f].spec->start.seconds <= 0) begin(f);
    else after(flows[f].spec->start, [this, f] { begin(f); });
  fluid.run();
  for (FlowState& flow : flows) {
    check(flow.spec->messages == 0 ? stopping : flow.done, "a flow that stopped before its end");
    if (flow.spec->messages != 0)
      flow.outcome.rate = Bytes{flow.total} / (flow.outcome.finish - flow.spec->start);
    for (const StageState& stage : flow.stages) flow.outcome.stages.push_back(stage.times);
    outcome.flows.push_back(flow.outcome);
  }
  return std::move(outcome);
}

Engine::Engine() : impl_(std::make_unique<Impl>()) {}
Engine::~Engine() = default;

Outcome Engine::run(const Scenario& scenario) { return impl_->run(scenario); }

}  // namespace gdr::sim
