#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "emu/agreement/guest_report.hpp"
#include "emu/agreement/wire_observer.hpp"
#include "emu/machine/addresses.hpp"
#include "emu/process/shell.hpp"
#include "emu/run/run_folder.hpp"
#include "emu/run/run_once.hpp"
#include "src/cli/emulate_options.hpp"
#include "src/cli/transfer_options.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/report/agreement_output.hpp"
#include "src/study/ask.hpp"

// gdr emulate --compare: compares the stages of gdr explain with what guests moved.

namespace gdr::cli {
namespace {

using agreement::WireObserver;

/// The first GPU of a host, or the one with the same name as another host's.
std::string default_end(const Topology& topology, std::size_t host, std::string_view like) {
  const Host& of = topology.hosts.at(host);
  const Device* found = nullptr;
  for (const Device& device : of.devices)
    if (device.kind == DeviceKind::gpu && (found == nullptr || device.name == like))
      found = &device;
  if (found == nullptr)
    throw InputError(
        fmt::format("--compare: host {} has no GPU; name two with --from and --to", of.name));
  return of.name + "/" + found->name;
}

TransferOptions transfer_options(const EmulateOptions& options, const Topology& topology) {
  if (topology.hosts.size() < 2)
    throw InputError(
        fmt::format("--compare: {} has one host; a transfer between GPUs of two hosts is compared",
                    topology.name));
  // They go through the guest's shell.
  if (const auto odd = options.transfer.find_first_not_of(
          "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=.,:/% ");
      odd != std::string::npos)
    throw InputError(fmt::format("--transfer: \"{}\" is not part of an option of gdr transfer",
                                 options.transfer[odd]));
  TransferOptions transfer;
  transfer.from = options.from.empty() ? default_end(topology, 0, "") : options.from;
  const DeviceId from = find_end(topology, transfer.from).device;
  const std::size_t other = from.host == 1 ? 0 : 1;
  transfer.to =
      options.to.empty() ? default_end(topology, other, get(topology, from).name) : options.to;
  transfer.path = options.paths.empty() ? "all" : fmt::format("{}", fmt::join(options.paths, ","));
  transfer.operation = options.operation;
  transfer.sizes = options.size;
  transfer.via = options.via;
  return transfer;
}

/// N of gpuN or nicN, as guests name it.
unsigned number_of(const Topology& topology, DeviceId id) {
  const auto devices = emu::numbered_devices(topology.hosts.at(id.host), get(topology, id).kind);
  const auto found = std::find_if(devices.begin(), devices.end(),
                                  [&](const emu::Numbered& n) { return n.device == id.device; });
  return static_cast<unsigned>(found->number);
}

/// Whether the user's own programs run instead of `gdr transfer`.
bool own_programs(const EmulateOptions& options) {
  return !options.commands.command.empty() || !options.commands.on.empty();
}

void check_programs(const EmulateOptions& options) {
  if (!own_programs(options)) return;
  if (options.paths.size() != 1 ||
      (options.paths.front() != "gdr" && options.paths.front() != "staged"))
    throw InputError(
        "--compare with programs of your own takes one --path, gdr or staged: the one that they "
        "should take; with tcp their data cannot be "
        "separated from their control messages");
  if (!options.transfer.empty())
    throw InputError(
        "--transfer has options of gdr transfer, which does not run beside programs of your own");
}

/// Why guests cannot run a plan; empty if they can.
std::string why_not_compared(const Topology& topology, const TransferPlan& plan) {
  const bool gpus = get(topology, plan.transfer.from).kind == DeviceKind::gpu &&
                    get(topology, plan.transfer.to).kind == DeviceKind::gpu;
  if (!plan.from_nic || !plan.to_nic || !gpus)
    return "--compare takes GPUs of two hosts: --from HOST/GPU --to HOST/GPU";
  if (number_of(topology, *plan.from_nic) != number_of(topology, *plan.to_nic))
    return fmt::format(
        "{} and {}: emulated NICs reach only those with the same number; choose two with --via, as "
        "in --via h0/nic0,h1/nic0",
        label(topology, *plan.from_nic), label(topology, *plan.to_nic));
  return {};
}

/// As in explain: a path requested by name must be possible; of "all", the possible ones are taken.
std::vector<ComparedPath> plans_of(const Graph& graph, const ModelLibrary& models,
                                   const EmulateOptions& options,
                                   std::vector<SkippedPath>& skipped) {
  const Topology& topology = graph.topology();
  const TransferOptions transfer_of = transfer_options(options, topology);
  const Verdict verdict = judge(graph, models);
  const auto transfers = transfers_of(graph, transfer_of);
  std::vector<ComparedPath> paths;
  for (const Transfer& asked : transfers) {
    if (asked.size != transfers.front().size)
      throw InputError(fmt::format("--size {}: --compare takes one size", options.size));
    const study::Admission admission = study::admit(graph, models, verdict, asked);
    std::string reason;
    if (admission.refusal) {
      reason = study::reason_of(*admission.refusal, verdict);
    } else {
      TransferPlan plan = plan_transfer(graph, models, admission.transfer);
      reason = why_not_compared(topology, plan);
      if (reason.empty()) paths.push_back({std::move(plan), {}, {}, ""});
    }
    if (reason.empty()) continue;
    if (transfer_of.path != "all") throw InputError(reason);
    skipped.push_back({std::string(to_string(asked.path)), reason});
  }
  if (paths.empty())
    throw InputError("--compare: no path leads from one to the other: " + skipped.front().reason);
  return paths;
}

/// What the fabric has counted so far.
struct Counted {
  WireObserver::Ports ports;
  fabric::FabricCounters counters;
};

/// Transfers in guests that are up, one after another.
class Comparison {
 public:
  Comparison(const EmulateOptions& options, const EmulationInput& input, const Graph& graph,
             emu::Signals& signals)
      : options_(options),
        input_(input),
        graph_(graph),
        signals_(signals),
        deadline_(parse_duration(options.timeout)) {}

  /// The exit code where guests failed or the time is up; nullopt: every path was run, or records
  /// why not. `again`: guests may be tried again.
  std::optional<int> run(std::vector<ComparedPath>& paths, bool& again);

 private:
  std::optional<int> ended(const emu::Session& session, const std::vector<std::string>& late,
                           const char* what) const;
  std::optional<int> run_path(emu::Session& session, ComparedPath& path);
  [[nodiscard]] std::vector<std::optional<std::string>> commands(const TransferPlan& plan) const;
  [[nodiscard]] std::vector<std::optional<std::string>> programs(const TransferPlan& plan) const;
  void take_line(const std::string& host, emu::Stream stream, std::string_view line);
  void observe(ComparedPath& path, const Counted& before, const Counted& after);
  [[nodiscard]] agreement::SideObservation side(const TransferPlan& plan, DeviceId gpu,
                                                DeviceId nic, const Counted& before,
                                                const Counted& after);
  Counted settled(emu::Session& session);

  const EmulateOptions& options_;
  const EmulationInput& input_;
  const Graph& graph_;
  emu::Signals& signals_;
  emu::Deadline deadline_;
  WireObserver wire_;
  std::map<std::string, std::vector<std::string>> lines_;  // of standard output, by host
};

std::optional<int> Comparison::ended(const emu::Session& session,
                                     const std::vector<std::string>& late, const char* what) const {
  if (!session.failure().empty()) {
    say(session.failure());
    return emu::exit_emulation_failed;
  }
  if (late.empty()) return std::nullopt;
  say(deadline_.message(late, what));
  return emu::exit_timeout;
}

std::optional<int> Comparison::run(std::vector<ComparedPath>& paths, bool& again) {
  const emu::RunFolder folder;
  emu::SessionPlan plan = input_.plan(folder.path());
  plan.tap = [this](const std::string& port, fabric::TapPoint point, fabric::FrameView frame) {
    wire_.take(port, point == fabric::TapPoint::delivered, frame);
  };
  emu::Session session(plan, [this](const std::string& host, emu::Stream stream,
                                    std::string_view line) { take_line(host, stream, line); });
  turn_until(session, signals_, deadline_, [&] { return session.ready(); });
  again = session.failed_early();
  if (const auto code = ended(session, session.not_ready(), "not up")) return code;
  std::optional<int> code;
  for (ComparedPath& path : paths)
    if (!code) code = run_path(session, path);
  report_traffic(options_, to_json(session.counters()));
  return code;
}

/// Standard output is reserved for the comparison.
void Comparison::take_line(const std::string& host, emu::Stream stream, std::string_view line) {
  if (stream == emu::Stream::output) lines_[host].emplace_back(line);
  const bool programs_own =
      own_programs(options_) && !line.empty() && !agreement::is_report_line(line);
  if (stream != emu::Stream::output || programs_own)
    emu::print_line(host, emu::Stream::errors, line);
}

/// The user's programs; those of the two hosts run between two readings of the module's counts.
std::vector<std::optional<std::string>> Comparison::programs(const TransferPlan& plan) const {
  std::vector<std::string> hosts;
  for (const Host& host : graph_.topology().hosts) hosts.push_back(host.name);
  auto result = emu::commands_of(options_.commands, hosts);
  for (const std::size_t host : {plan.transfer.from.host, plan.transfer.to.host}) {
    agreement::GuestRun run;
    run.program = result[host].value_or("true");
    result[host] = agreement::guest_command(run);
  }
  return result;
}

/// A write or send starts at the host that the bytes leave, a read at the one that they reach; the
/// other host serves.
std::vector<std::optional<std::string>> Comparison::commands(const TransferPlan& plan) const {
  const Topology& topology = graph_.topology();
  const bool fetches = plan.transfer.operation == Operation::read;
  std::vector<std::optional<std::string>> result(topology.hosts.size());
  const auto command = [&](DeviceId gpu, DeviceId nic, bool client, std::size_t peer) {
    agreement::GuestRun run;
    run.tool = emu::shell_word(std::filesystem::read_symlink("/proc/self/exe").string());
    run.gpu = number_of(topology, gpu);
    run.nic = number_of(topology, nic);
    run.path = to_string(plan.transfer.path);
    run.operation = to_string(plan.transfer.operation);
    run.size = plan.transfer.size;
    run.more = options_.transfer;
    if (client) run.server = emu::ip_address(peer, run.nic);
    result[gpu.host] = agreement::guest_command(run);
  };
  command(plan.transfer.from, *plan.from_nic, !fetches, plan.transfer.to.host);
  command(plan.transfer.to, *plan.to_nic, fetches, plan.transfer.from.host);
  return result;
}

/// Waits until the counts are stable: what a guest sent before its command ended may still be on
/// its way to the switch.
Counted Comparison::settled(emu::Session& session) {
  Counted counted{wire_.ports(), session.counters()};
  for (;;) {
    turn_until(session, signals_, emu::Deadline(Duration{0.3}), [] { return false; });
    Counted now{wire_.ports(), session.counters()};
    if (now.ports == counted.ports || deadline_.passed()) return now;
    counted = std::move(now);
  }
}

std::optional<int> Comparison::run_path(emu::Session& session, ComparedPath& path) {
  lines_.clear();
  const Counted before = settled(session);
  session.run(own_programs(options_) ? programs(path.plan) : commands(path.plan), input_.folder());
  turn_until(session, signals_, deadline_,
             [&] { return session.running().empty() || session.exit_code() != 0; });
  if (session.exit_code() != 0) {
    // The other side usually notices; a server without a client would wait.
    turn_until(session, signals_, emu::Deadline(Duration{10}),
               [&] { return session.running().empty(); });
    session.stop();
    turn_until(session, signals_, deadline_, [&] { return session.running().empty(); });
  }
  if (const auto code = ended(session, session.running(), "not finished")) return code;
  session.take_rest();
  if (session.exit_code() != 0)
    path.failure =
        fmt::format("{} failed (exit code {})",
                    own_programs(options_) ? "a program" : "the transfer", session.exit_code());
  else observe(path, before, settled(session));
  return std::nullopt;
}

agreement::SideObservation Comparison::side(const TransferPlan& plan, DeviceId gpu, DeviceId nic,
                                            const Counted& before, const Counted& after) {
  const Topology& topology = graph_.topology();
  const std::string& host = topology.hosts.at(gpu.host).name;
  const std::string port = label(topology, nic);
  const agreement::GuestReport report =
      agreement::read_report(lines_[host], number_of(topology, gpu));
  if (report.process && report.path != to_string(plan.transfer.path))
    throw InputError(fmt::format("{} took the path {}", host, report.path));
  agreement::SideObservation seen;
  seen.process = report.process;
  seen.module = report.module;
  for (const auto& [name, now] : after.ports) {
    const auto known = before.ports.find(name);
    const WireObserver::Port then =
        known == before.ports.end() ? WireObserver::Port{} : known->second;
    if (name == port) seen.sent = now.sent - then.sent;
    if (name == port) seen.delivered = now.delivered - then.delivered;
    else if (name.starts_with(host + "/"))
      seen.other_nics = seen.other_nics + (now.sent - then.sent);
  }
  const auto flows = [&](const fabric::FabricCounters& counters) {
    std::pair<Bytes, Bytes> sums;
    for (const fabric::PortCounters& of : counters.ports) {
      if (of.name != port) continue;
      for (const fabric::RoceFlow& flow : of.roce) sums.first = sums.first + flow.announced;
      for (const fabric::TcpFlow& flow : of.tcp) sums.second = sums.second + flow.payload;
    }
    return sums;
  };
  const auto [announced, tcp] = flows(after.counters);
  const auto [announced_before, tcp_before] = flows(before.counters);
  seen.announced = {announced.count - announced_before.count};
  seen.tcp = {tcp.count - tcp_before.count};
  if (!report.process)
    for (agreement::WireBytes* bytes : {&seen.sent, &seen.delivered, &seen.other_nics})
      *bytes = agreement::with_sends_as_data(*bytes);
  return seen;
}

void Comparison::observe(ComparedPath& path, const Counted& before, const Counted& after) {
  const TransferPlan& plan = path.plan;
  try {
    path.observed.from = side(plan, plan.transfer.from, *plan.from_nic, before, after);
    path.observed.to = side(plan, plan.transfer.to, *plan.to_nic, before, after);
    path.audit = agreement::audit(graph_, plan, path.observed);
  } catch (const InputError& error) {
    path.failure = error.what();
  }
}

}  // namespace

int emulate_compare(const EmulateOptions& options, const ModelLibrary& models,
                    emu::Signals& signals) {
  check_programs(options);
  EmulationInput input(options, models);
  const Graph graph(input.topology());
  std::vector<SkippedPath> skipped;
  std::vector<ComparedPath> paths = plans_of(graph, models, options, skipped);
  input.prepare(signals);
  bool again = false;
  auto code = Comparison(options, input, graph, signals).run(paths, again);
  if (again) {
    say("starting the guests once more");
    code = Comparison(options, input, graph, signals).run(paths, again);
  }
  if (code) return *code;
  write_file("-", options.format == "json"
                      ? json::dump(compared_to_json(graph, paths, skipped)) + "\n"
                      : compared_to_text(graph, paths, skipped));
  return std::all_of(paths.begin(), paths.end(),
                     [](const ComparedPath& path) { return path.equal(); })
             ? 0
             : 1;
}

}  // namespace gdr::cli
