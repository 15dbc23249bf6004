#include "src/study/verify.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "src/hardware/hardware.hpp"
#include "src/study/ask.hpp"
#include "src/study/equal_hosts.hpp"

namespace gdr::study {
namespace {

bool over_network(const Figure& figure) { return !figure.gpus && !of_storage(figure); }

/// A topology with one change.
struct Variant {
  Condition condition;
  Topology topology;
};

/// A topology with what follows from it.
struct Judged {
  Judged(const Topology& topology, const ModelLibrary& models)
      : graph(topology), hardware(graph, models), verdict(judge(graph, models)) {}
  Graph graph;
  Hardware hardware;
  Verdict verdict;
};

void add_link_variants(const Topology& topology, const ModelLibrary& models, DeviceId id,
                       std::vector<Variant>& variants) {
  const Graph graph(topology);
  const auto link = Hardware(graph, models).link(id).value;
  if (!link) return;
  const auto add = [&](PcieLink changed, Change change) {
    Variant variant{{change, label(topology, id), changed, link, {}, 0}, topology};
    Device& device = variant.topology.hosts[id.host].devices[id.device];
    if (!device.link_capability) device.link_capability = link;
    device.link = changed;
    variants.push_back(std::move(variant));
  };
  if (link->width >= 2)
    add({link->generation, link->width / 2 == 6 ? 4 : link->width / 2}, Change::half_lanes);
  if (link->generation > 1) add({link->generation - 1, link->width}, Change::slower_generation);
  if (link->generation > 2) add({1, link->width}, Change::idle_speed);
}

std::vector<Variant> variants_of(const Topology& topology, const ModelLibrary& models,
                                 DeviceId from, const std::optional<DeviceId>& nic) {
  std::vector<Variant> variants{{{}, topology}};
  add_link_variants(topology, models, from, variants);
  if (nic) add_link_variants(topology, models, *nic, variants);
  if (nic) {
    const Graph graph(topology);
    const Hardware hardware(graph, models);
    const Bandwidth rate = hardware.port_rate(*nic);
    Variant half{{Change::half_port_rate, {}, {}, {}, rate * 0.5, 0}, topology};
    for (const DeviceId id : devices_of_kind(topology, DeviceKind::nic))
      half.topology.hosts[id.host].devices[id.device].port_rate =
          hardware.port_rate(id).value * 0.5;
    variants.push_back(std::move(half));
  }
  Variant redirected{{Change::acs_redirects, {}, {}, {}, {}, 0}, topology};
  bool any = false;
  for (Host& host : redirected.topology.hosts)
    for (Device& device : host.devices)
      if (device.kind != DeviceKind::host_bridge && !(device.acs && device.acs->redirects())) {
        device.acs =
            Acs{Acs::request_redirect | Acs::completion_redirect | Acs::upstream_forwarding};
        any = true;
      }
  if (any) variants.push_back(std::move(redirected));
  return variants;
}

/// A NIC on another NUMA node than the best one, so that traffic crosses sockets.
std::optional<DeviceId> far_nic(const Hardware& hardware, DeviceId gpu) {
  for (const RankedNic& nic : hardware.nics_by_distance(gpu, NicUse::rdma))
    if (pcie_distance(hardware.graph(), gpu, nic.nic) == Distance::sys) return nic.nic;
  return std::nullopt;
}

class Fitter {
 public:
  Fitter(sim::Simulator& simulator, Fit& fit) : simulator_(simulator), fit_(fit) {}

  void add(const Judged& judged, const Transfer& transfer, const Condition& condition) {
    const Figure& figure = fit_.figure;
    const Answer answer = ask(judged.hardware, judged.verdict, simulator_,
                              {transfer, {128, figure.queue_pairs, figure.bidirectional}, false});
    if (const sim::Prediction* prediction = answer.prediction())
      add(transfer.path, condition,
          figure.bandwidth ? prediction->bandwidth.bytes_per_second : prediction->latency.seconds);
    else if (condition.change == Change::none)
      note_blocked(judged.verdict, transfer.path, *answer.refusal());
  }

  /// The bandwidth of transfers that run side by side.
  void add_together(const Judged& judged, const std::vector<Transfer>& transfers, int depth,
                    const Condition& condition) {
    std::vector<Transfer> admitted;
    for (const Transfer& transfer : transfers) {
      Admission admission = admit(judged.graph, judged.hardware.models(), judged.verdict, transfer);
      if (admission.refusal) {
        if (condition.change == Change::none)
          note_blocked(judged.verdict, transfer.path, *admission.refusal);
        return;
      }
      admitted.push_back(std::move(admission.transfer));
    }
    add(admitted.front().path, condition,
        sim::predict_streams(simulator_, judged.hardware, admitted, {depth, 1, false})
            .sum.bytes_per_second);
  }

 private:
  void note_blocked(const Verdict& verdict, PathKind path, const Refusal& refusal) {
    if (refusal.kind == Refusal::Kind::blocked)
      fit_.blocked.push_back({path, verdict.findings.at(*refusal.finding).rule});
  }

  void add(PathKind path, const Condition& condition, double predicted) {
    const Figure& figure = fit_.figure;
    const double measured =
        figure.bandwidth ? figure.bandwidth->bytes_per_second : figure.latency->seconds;
    if (predicted <= 0) return;
    // A change without effect on the prediction explains nothing.
    for (const Candidate& other : fit_.candidates)
      if (condition.change != Change::none && other.condition.change == Change::none &&
          other.path == path && std::abs(std::log(predicted / other.predicted)) < 0.03)
        return;
    fit_.candidates.push_back({path, condition, predicted, measured / predicted - 1});
  }

  sim::Simulator& simulator_;
  Fit& fit_;
};

Sureness sureness_of(const std::vector<Candidate>& candidates) {
  if (candidates.empty() || distance_of(candidates.front()) > 0.30) return Sureness::none;
  double next = 10;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    next = std::min(next, distance_of(candidates[i]));
  const double best = distance_of(candidates.front());
  if (best <= 0.10 && next >= 0.25) return Sureness::sure;
  return best <= 0.20 && next - best >= 0.08 ? Sureness::likely : Sureness::open;
}

Advice storage_advice(const Fit& fit) {
  if (fit.candidates.empty()) return Advice::name_drives;
  if (fit.sureness == Sureness::none) return Advice::vary_storage_run;
  if (fit.figure.peer_to_peer != true) return Advice::nothing;
  if (fit.sureness == Sureness::open) return Advice::ask_gds_tools;
  return fit.candidates.front().path == PathKind::staged ? Advice::ask_why_compatibility
                                                         : Advice::nothing;
}

Advice advice_of(const Fit& fit) {
  if (!is_predicted(fit.figure)) return Advice::compare_p2p_off;
  if (of_storage(fit.figure)) return storage_advice(fit);
  if (fit.sureness == Sureness::none) return Advice::look_further;
  const Candidate& best = fit.candidates.front();
  if (fit.sureness == Sureness::open && (best.condition.departs() || best.staged()) &&
      fit.figure.peer_to_peer != false)
    return Advice::ask_gdr_tools;
  switch (best.condition.change) {
    case Change::half_lanes:
    case Change::slower_generation:
    case Change::idle_speed:
      return Advice::compare_links;
    case Change::half_port_rate:
      return Advice::see_port_rates;
    case Change::acs_redirects:
      return Advice::clear_acs;
    case Change::far_nic:
      return Advice::see_nic;
    case Change::none:
    case Change::all_drives:
      break;
  }
  if (fit.figure.peer_to_peer == false) return Advice::p2p_was_off;
  if (best.staged()) return Advice::find_why_staged;
  return best.path == PathKind::rdma && fit.figure.gpu_memory == false ? Advice::test_gpu_memory
                                                                       : Advice::nothing;
}

void conclude(Fit& fit) {
  if (!is_predicted(fit.figure)) fit.candidates.clear();
  std::stable_sort(
      fit.candidates.begin(), fit.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return distance_of(a) < distance_of(b); });
  // Of candidates that fit equally well, an unchanged topology comes first.
  if (!fit.candidates.empty()) {
    const double best = distance_of(fit.candidates.front());
    const auto plain =
        std::find_if(fit.candidates.begin(), fit.candidates.end(), [&](const Candidate& c) {
          return c.condition.change == Change::none && distance_of(c) <= best + 0.03;
        });
    if (plain != fit.candidates.end()) std::rotate(fit.candidates.begin(), plain, plain + 1);
  }
  fit.sureness = sureness_of(fit.candidates);
  fit.advice = advice_of(fit);
}

/// The paths that the tool may have measured.
std::vector<PathKind> paths_of(const Figure& figure, const Graph& graph, const Transfer& transfer) {
  std::vector<PathKind> paths = usual_paths(graph, transfer);
  if (figure.peer_to_peer == true)
    std::erase_if(paths,
                  [](PathKind path) { return path == PathKind::staged || path == PathKind::tcp; });
  if (figure.peer_to_peer == false)
    std::erase_if(paths,
                  [](PathKind path) { return path == PathKind::p2p || path == PathKind::nvlink; });
  return paths;
}

/// Drives of the figure's host: the one that --from or --to names, else all.
std::vector<DeviceId> drives_of(const Topology& topology, const Ends& ends) {
  for (const std::string& end : {ends.from, ends.to})
    if (!end.empty())
      if (const DeviceId id = find_device(topology, end);
          get(topology, id).kind == DeviceKind::nvme)
        return {id};
  std::vector<DeviceId> drives = devices_of_kind(topology, DeviceKind::nvme);
  std::erase_if(drives, [](DeviceId id) { return id.host != 0; });
  return drives;
}

std::optional<DeviceId> gpu_of(const Topology& topology, const Ends& ends) {
  for (const std::string& end : {ends.from, ends.to})
    if (!end.empty())
      if (const DeviceId id = find_device(topology, end); get(topology, id).kind == DeviceKind::gpu)
        return id;
  const std::vector<DeviceId> gpus = devices_of_kind(topology, DeviceKind::gpu);
  return gpus.empty() ? std::nullopt : std::optional(gpus.front());
}

/// Fits a figure of drives and a GPU (or host memory). gdsio does not print how many drives hold
/// its files, so one drive and all drives are tried.
void fit_storage(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models,
                 const Ends& ends, Fit& fit) {
  const std::vector<DeviceId> drives = drives_of(topology, ends);
  const auto gpu = gpu_of(topology, ends);
  const bool to_host = fit.figure.gpu_memory == false;
  if (drives.empty() || (!to_host && !gpu)) return;
  const bool reads = fit.figure.operation == Operation::read;
  const auto transfer_of = [&](DeviceId drive, PathKind path) {
    Transfer transfer;
    transfer.path = path;
    transfer.size = fit.figure.size;
    transfer.from = reads || to_host ? drive : *gpu;
    transfer.to = reads && !to_host ? *gpu : drive;
    if (to_host) transfer.host_end = reads ? HostEnd::to : HostEnd::from;
    return transfer;
  };
  const std::string other = to_host ? "host memory" : label(topology, *gpu);
  const std::string drive = label(topology, drives.front());
  fit.from = reads ? drive : other;
  fit.to = reads ? other : drive;
  std::vector<PathKind> paths{PathKind::gds, PathKind::staged};
  if (to_host) paths = {PathKind::dma};
  else if (fit.figure.peer_to_peer == false) paths = {PathKind::staged};
  const Judged judged(topology, models);
  Fitter fitter(simulator, fit);
  for (const PathKind path : paths)
    for (std::size_t count = 1; count <= drives.size();
         count = count == drives.size() ? count + 1 : drives.size()) {
      std::vector<Transfer> transfers;
      for (std::size_t i = 0; i < count; ++i) transfers.push_back(transfer_of(drives[i], path));
      const int depth = std::max(1, fit.figure.threads / static_cast<int>(count));
      fitter.add_together(
          judged, transfers, depth,
          count == 1 ? Condition{} : Condition{Change::all_drives, {}, {}, {}, {}, count});
    }
}

/// The ends of a figure: those that its tool states, else those asked for, else GPU 0 of either
/// host.
void name_ends(const Topology& topology, const Ends& ends, Fit& fit) {
  const auto gpu = [&](std::size_t host, int number) {
    return topology.hosts.at(host).name + "/gpu" + std::to_string(number);
  };
  const auto& gpus = fit.figure.gpus;
  const bool two = topology.hosts.size() > 1;
  fit.from = !ends.from.empty() ? ends.from : gpu(0, gpus ? gpus->first : 0);
  fit.to = !ends.to.empty() ? ends.to : gpus ? gpu(0, gpus->second) : two ? gpu(1, 0) : gpu(0, 1);
}

void fit_transfer(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models,
                  const Ends& ends, Fit& fit) {
  const Figure& figure = fit.figure;
  name_ends(topology, ends, fit);
  Transfer transfer;
  transfer.from = find_device(topology, fit.from);
  transfer.to = find_device(topology, fit.to);
  transfer.operation = figure.gpus ? Operation::write : figure.operation;
  transfer.memory = figure.gpu_memory.value_or(true) ? MemoryKind::gpu : MemoryKind::host;
  transfer.size = figure.size;
  const bool between_hosts = transfer.from.host != transfer.to.host;
  const Judged as_is(topology, models);
  const std::vector<PathKind> paths = paths_of(figure, as_is.graph, transfer);
  transfer.path = transfer.memory == MemoryKind::gpu ? PathKind::gdr : PathKind::rdma;
  const Admission direct = admit(as_is.graph, models, as_is.verdict, transfer);
  const auto nic = direct.nics.empty() ? std::nullopt : std::optional(direct.nics.front().nic);
  // Every variant uses the same NICs; with a slower link, another NIC would be the best one.
  for (const TakenNic& taken : direct.nics) transfer.via.push_back(taken.nic);
  Fitter fitter(simulator, fit);
  for (const Variant& variant : variants_of(topology, models, transfer.from, nic)) {
    const Judged judged(variant.topology, models);
    for (const PathKind path : paths) {
      // tcp and nvlink are tried without changes only: other limits decide there.
      if (variant.condition.change != Change::none &&
          (path == PathKind::tcp || path == PathKind::nvlink))
        continue;
      transfer.path = path;
      fitter.add(judged, transfer, variant.condition);
    }
  }
  const auto far = between_hosts ? far_nic(as_is.hardware, transfer.from) : std::nullopt;
  if (far && figure.gpu_memory.value_or(true)) {
    transfer.path = PathKind::gdr;
    transfer.via = {*far};
    fitter.add(as_is, transfer, {Change::far_nic, label(topology, *far), {}, {}, {}, 0});
  }
  if (nic && get(topology, *nic).model.empty() && !get(topology, *nic).port_rate)
    fit.assumed_nic = AssumedNic{label(topology, *nic), as_is.hardware.port_rate(*nic)};
}

}  // namespace

bool of_storage(const Figure& figure) { return figure.tool == "gdsio"; }

bool is_predicted(const Figure& figure) {
  return figure.tool != "p2pBandwidthLatencyTest" || !figure.latency;
}

double distance_of(const Candidate& candidate) { return std::abs(std::log1p(candidate.deviation)); }

const Candidate* usual(const Fit& fit) {
  for (const Candidate& one : fit.candidates)
    if (one.condition.change == Change::none && !one.staged()) return &one;
  return nullptr;
}

std::string_view to_string(Sureness sureness) {
  static constexpr std::array<std::string_view, 4> names{"sure", "likely", "open", "none"};
  return names.at(static_cast<std::size_t>(sureness));
}

bool is_downgrade(const Fit& fit) {
  if (fit.figure.peer_to_peer == false) return false;
  const Candidate* expected = usual(fit);
  if (fit.sureness == Sureness::none)
    return expected != nullptr && fit.figure.bandwidth && expected->deviation < -0.3;
  if (fit.sureness == Sureness::open) return false;
  return fit.candidates.front().condition.departs() || fit.candidates.front().staged();
}

std::vector<Fit> fit(sim::Simulator& simulator, const Topology& given, const ModelLibrary& models,
                     const std::vector<Figure>& figures, const Ends& ends) {
  const Topology topology = given.hosts.size() == 1 ? with_equal_host(given, models) : given;
  std::vector<Fit> fits;
  for (const Figure& figure : figures) {
    Fit& one = fits.emplace_back();
    one.figure = figure;
    if (of_storage(figure)) fit_storage(simulator, given, models, ends, one);
    else if (is_predicted(figure))
      fit_transfer(simulator, over_network(figure) ? topology : given, models, ends, one);
    conclude(one);
  }
  return fits;
}

}  // namespace gdr::study
