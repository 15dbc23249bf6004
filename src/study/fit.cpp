#include "src/study/fit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "src/common/error.hpp"
#include "src/hardware/hardware.hpp"
#include "src/verdict/verdict.hpp"

namespace gdr::measured {
namespace {

bool of_storage(const Figure& figure) { return figure.tool == "gdsio"; }

bool over_network(const Figure& figure) { return !figure.gpus && !of_storage(figure); }

/// A topology with one thing different, and how to say it.
struct Variant {
  std::string condition;
  Topology topology;
};

Topology with_second_host(Topology topology) {
  if (topology.hosts.size() != 1) return topology;
  Host second = topology.hosts.front();
  second.name = topology.hosts.front().name == "h1" ? "h2" : "h1";
  topology.hosts.push_back(std::move(second));
  if (!topology.fabric) {
    bool infiniband = false;
    for (const Device& device : topology.hosts.front().devices)
      infiniband = infiniband || device.link_layer == LinkLayer::infiniband;
    topology.fabric = Fabric{infiniband ? "infiniband" : "roce-v2", {}, {}};
  }
  return topology;
}

void add_link_variants(const Topology& topology, const ModelLibrary& models, DeviceId id,
                       std::vector<Variant>& variants) {
  const Graph graph(topology);
  const auto link = Hardware(graph, models).link(id).value;
  if (!link) return;
  const auto add = [&](PcieLink changed, const std::string& what) {
    Variant variant{fmt::format("{} ({}, not {})", what, to_string(changed), to_string(*link)),
                    topology};
    Device& device = variant.topology.hosts[id.host].devices[id.device];
    if (!device.link_capability) device.link_capability = link;
    device.link = changed;
    variants.push_back(std::move(variant));
  };
  const std::string name = label(topology, id);
  if (link->width >= 2)
    add({link->generation, link->width / 2 == 6 ? 4 : link->width / 2},
        fmt::format("half the lanes of {}", name));
  if (link->generation > 1)
    add({link->generation - 1, link->width}, fmt::format("{} one generation slower", name));
  if (link->generation > 2)
    add({1, link->width}, fmt::format("{} at the speed of an idle link", name));
}

std::vector<Variant> variants_of(const Topology& topology, const ModelLibrary& models,
                                 const Transfer& transfer, const std::optional<DeviceId>& nic) {
  std::vector<Variant> variants{{"", topology}};
  add_link_variants(topology, models, transfer.from, variants);
  if (nic) add_link_variants(topology, models, *nic, variants);
  if (nic) {
    const Graph graph(topology);
    const Bandwidth rate = Hardware(graph, models).port_rate(*nic);
    Variant half{
        fmt::format("ports at half of their rate ({:.0f} Gb/s)", rate.bytes_per_second * 4e-9),
        topology};
    for (const DeviceId id : devices_of_kind(topology, DeviceKind::nic))
      half.topology.hosts[id.host].devices[id.device].port_rate = rate * 0.5;
    variants.push_back(std::move(half));
  }
  Variant redirected{"ACS redirects at all ports", topology};
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

/// A NIC of another NUMA node than the one that is best: traffic then crosses sockets.
std::optional<DeviceId> far_nic(const Graph& graph, const ModelLibrary& models, DeviceId gpu) {
  for (const RankedNic& nic : Hardware(graph, models).nics_by_distance(gpu, NicUse::rdma))
    if (pcie_distance(graph, gpu, nic.nic) == Distance::sys) return nic.nic;
  return std::nullopt;
}

class Fitter {
 public:
  Fitter(sim::Simulator& simulator, const ModelLibrary& models, const Figure& figure)
      : simulator_(simulator), models_(models), figure_(figure) {}

  void add(const Topology& topology, Transfer transfer, const std::string& condition) {
    try {
      const Graph graph(topology);
      const Hardware hardware(graph, models_);
      const sim::Options options{128, figure_.queue_pairs, figure_.bidirectional};
      const sim::Prediction prediction = sim::predict(simulator_, hardware, transfer, options);
      add(transfer.path, condition, !condition.empty(),
          figure_.bandwidth ? prediction.bandwidth.bytes_per_second : prediction.latency.seconds);
    } catch (const InputError&) {
      // The path does not exist on this topology.
    }
  }

  /// The bandwidth of transfers that go on side by side.
  void add_together(const Topology& topology, const std::vector<Transfer>& transfers, int depth,
                    const std::string& condition) {
    try {
      const Graph graph(topology);
      const Hardware hardware(graph, models_);
      add(transfers.front().path, condition, false,
          sim::predict_streams(simulator_, hardware, transfers, {depth, 1, false})
              .sum.bytes_per_second);
    } catch (const InputError&) {
      // As above.
    }
  }

  std::vector<Candidate> candidates;

 private:
  void add(PathKind path, const std::string& condition, bool changed, double predicted) {
    const double measured =
        figure_.bandwidth ? figure_.bandwidth->bytes_per_second : figure_.latency->seconds;
    if (predicted <= 0) return;
    // A change that changes nothing explains nothing.
    for (const Candidate& other : candidates)
      if (!condition.empty() && other.condition.empty() && other.path == to_string(path) &&
          std::abs(std::log(predicted / other.predicted)) < 0.03)
        return;
    candidates.push_back(
        {std::string(to_string(path)), condition, changed, predicted, measured / predicted - 1});
  }

  sim::Simulator& simulator_;
  const ModelLibrary& models_;
  const Figure& figure_;
};

double error_of(const Candidate& candidate) { return std::abs(std::log1p(candidate.deviation)); }

Sureness sureness_of(const std::vector<Candidate>& candidates) {
  if (candidates.empty() || error_of(candidates.front()) > 0.30) return Sureness::none;
  double next = 10;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    next = std::min(next, error_of(candidates[i]));
  const double best = error_of(candidates.front());
  if (best <= 0.10 && next >= 0.25) return Sureness::sure;
  return best <= 0.20 && next - best >= 0.08 ? Sureness::likely : Sureness::open;
}

/// What no path here stands for; empty for all else.
std::string not_predicted(const Figure& figure) {
  if (figure.tool == "p2pBandwidthLatencyTest" && figure.latency)
    return "The test's latencies are times of tiny copies that are queued one behind the other "
           "(with --sm_copy: of kernels): what an engine needs between "
           "two copies, which the models do not have.";
  return {};
}

std::string next_of_storage(const Fit& fit) {
  if (fit.candidates.empty())
    return "Give the drive and the GPU that were used (--from, --to), or a topology that has the "
           "drives.";
  if (fit.sureness == Sureness::none)
    return "Compare with the same run on fewer files, with more threads (-w) and through the CPU "
           "(-x 1); the file system or a RAID may bound it.";
  if (fit.figure.peer_to_peer == true && fit.sureness == Sureness::open)
    return "Several ways give as much here: cufile.log and gdscheck -p say whether GPUDirect "
           "Storage was used.";
  if (fit.figure.peer_to_peer == true && fit.candidates.front().path == "staged")
    return "The data takes the way through host memory (compatibility mode): gdscheck -p says why, "
           "gdr doctor looks for the cause.";
  return "Nothing: this is what the topology gives.";
}

std::string next_of(const Fit& fit) {
  if (!not_predicted(fit.figure).empty())
    return "Compare P2P on with P2P off: off is several times as long where P2P works. The "
           "bandwidths of the same run are fitted.";
  if (of_storage(fit.figure)) return next_of_storage(fit);
  if (fit.sureness == Sureness::none)
    return "Look at what the topology leaves open (gdr check), at other load, at the tool's "
           "options; give the NICs and GPUs that were used (--from, --to).";
  const Candidate& best = fit.candidates.front();
  if (fit.sureness == Sureness::open &&
      (best.changed || best.path == "staged" || best.path == "tcp") &&
      fit.figure.peer_to_peer != false)
    return "Several explanations fit: gdr doctor looks whether GPUDirect RDMA is used, NCCL says "
           "it in its log (gdr nccl --log), and lspci -vvv under load shows the links (LnkSta).";
  if (best.condition.find("lanes") != std::string::npos ||
      best.condition.find("slower") != std::string::npos ||
      best.condition.find("idle") != std::string::npos)
    return "Compare LnkSta with LnkCap under load (lspci -vvv) of that device and of the port "
           "above it; reseat the card, look at the slot's wiring and the BIOS.";
  if (best.condition.find("ports at half") != std::string::npos)
    return "See at which rate the ports run (ibstat, ethtool): cable, switch port, or a splitter "
           "may halve it.";
  if (best.condition.find("ACS") != std::string::npos)
    return "Read ACSCtl of the bridges as root (lspci -vvv) and clear ReqRedir and CmpltRedir.";
  if (best.condition.find("far NIC") != std::string::npos)
    return "See which NIC was used (NCCL_DEBUG=INFO, UCX_LOG_LEVEL=info) and choose the GPU's own.";
  if (fit.figure.peer_to_peer == false) return "Nothing: the tool had peer-to-peer switched off.";
  if (best.path == "staged" || best.path == "tcp")
    return "GPUDirect RDMA is not used: gdr doctor looks for the cause; NCCL says it in its log "
           "(gdr nccl --log).";
  if (best.path == "rdma" && fit.figure.gpu_memory == false)
    return "The test moved host memory, which proves nothing about GPUDirect RDMA: run it with "
           "--use_cuda=0.";
  return "Nothing: this is what the topology gives.";
}

std::string words_of(const Candidate& candidate) {
  return candidate.condition.empty()
             ? candidate.path
             : fmt::format("{} with {}", candidate.path, candidate.condition);
}

/// What the topology gives as it is, by the direct path: what a figure should have been.
const Candidate* normal(const Fit& fit) {
  for (const Candidate& one : fit.candidates)
    if (one.condition.empty() && one.path != "staged" && one.path != "tcp") return &one;
  return nullptr;
}

/// Beside the best: what fits about as well, and what would have been normal.
std::string beside(const Fit& fit) {
  const Candidate& best = fit.candidates.front();
  if (fit.sureness == Sureness::open) {
    std::string others;
    std::size_t named = 0;
    for (std::size_t i = 1; i < fit.candidates.size() && named < 2; ++i)
      if (error_of(fit.candidates[i]) <= error_of(best) + 0.05) {
        others += (others.empty() ? "" : ", ") + words_of(fit.candidates[i]);
        ++named;
      }
    return others.empty() ? "" : fmt::format(" {} would give about as much.", others);
  }
  const Candidate* expected = normal(fit);
  if (fit.sureness != Sureness::none || expected == nullptr || !fit.figure.bandwidth ||
      fit.figure.peer_to_peer == false)
    return {};
  return fmt::format(" The topology gives {:.4g} GB/s by {}; this is {:.0f} % of it.",
                     expected->predicted * 1e-9, expected->path, 100 * (1 + expected->deviation));
}

void conclude(Fit& fit) {
  std::stable_sort(
      fit.candidates.begin(), fit.candidates.end(),
      [](const Candidate& a, const Candidate& b) { return error_of(a) < error_of(b); });
  // What nothing changes comes first of what fits alike.
  if (!fit.candidates.empty()) {
    const double best = error_of(fit.candidates.front());
    const auto plain = std::find_if(
        fit.candidates.begin(), fit.candidates.end(),
        [&](const Candidate& c) { return c.condition.empty() && error_of(c) <= best + 0.03; });
    if (plain != fit.candidates.end()) std::rotate(fit.candidates.begin(), plain, plain + 1);
  }
  fit.sureness = sureness_of(fit.candidates);
  if (const std::string why = not_predicted(fit.figure); !why.empty()) {
    fit.candidates.clear();
    fit.sureness = Sureness::none;
    fit.verdict = why;
  } else if (fit.candidates.empty()) {
    fit.verdict = of_storage(fit.figure) && fit.from.empty()
                      ? "The topology shows no drive."
                      : "No path between the two exists in this topology.";
  } else {
    const Candidate& best = fit.candidates.front();
    const std::string what = words_of(best);
    fit.verdict =
        fit.sureness == Sureness::none
            ? fmt::format("Fits no path; nearest is {}, {:+.0f} %.", what, best.deviation * 100)
            : fmt::format("Fits {}, {:+.0f} %.", what, best.deviation * 100);
    fit.verdict += beside(fit);
  }
  if (fit.figure.gpu_memory == false && fit.figure.tool.starts_with("ib_"))
    fit.verdict +=
        " The test moved host memory (no --use_cuda), or memory that only looks like a GPU's "
        "(cuMemAllocManaged).";
  fit.next = next_of(fit);
}

/// What the tool measured may have gone any way that moves GPU memory; host memory goes one way.
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

/// Between drives and a GPU (or host memory): gdsio does not print how many drives its files are
/// on, so that one is tried, and all.
void fit_storage(Fit& fit, Fitter& fitter, const Topology& topology, const Ends& ends) {
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
  for (const PathKind path : paths)
    for (std::size_t count = 1; count <= drives.size();
         count = count == drives.size() ? count + 1 : drives.size()) {
      std::vector<Transfer> transfers;
      for (std::size_t i = 0; i < count; ++i) transfers.push_back(transfer_of(drives[i], path));
      const int depth = std::max(1, fit.figure.threads / static_cast<int>(count));
      fitter.add_together(topology, transfers, depth,
                          count == 1 ? "" : fmt::format("all {} drives", count));
    }
}

}  // namespace

std::string_view to_string(Sureness sureness) {
  static constexpr std::array<std::string_view, 4> names{"sure", "likely", "open", "none"};
  return names.at(static_cast<std::size_t>(sureness));
}

bool is_downgrade(const Fit& fit) {
  if (const Candidate* expected = normal(fit); fit.sureness == Sureness::none &&
                                               expected != nullptr && fit.figure.bandwidth &&
                                               fit.figure.peer_to_peer != false)
    return expected->deviation < -0.3;
  if (fit.sureness != Sureness::sure && fit.sureness != Sureness::likely) return false;
  if (fit.figure.peer_to_peer == false) return false;
  const Candidate& best = fit.candidates.front();
  return best.changed || best.path == "staged" || best.path == "tcp";
}

std::vector<Fit> fit(sim::Simulator& simulator, const Topology& given, const ModelLibrary& models,
                     const std::vector<Figure>& figures, const Ends& ends) {
  std::vector<Fit> fits;
  for (const Figure& figure : figures) {
    Fit one;
    one.figure = figure;
    if (!not_predicted(figure).empty()) {
      conclude(one);
      fits.push_back(std::move(one));
      continue;
    }
    if (of_storage(figure)) {
      Fitter fitter(simulator, models, figure);
      fit_storage(one, fitter, given, ends);
      one.candidates = std::move(fitter.candidates);
      conclude(one);
      fits.push_back(std::move(one));
      continue;
    }
    const Topology topology = over_network(figure) ? with_second_host(given) : given;
    const std::string& first = topology.hosts.front().name;
    one.from = !ends.from.empty() ? ends.from
               : figure.gpus      ? fmt::format("{}/gpu{}", first, figure.gpus->first)
                                  : first + "/gpu0";
    one.to = !ends.to.empty()            ? ends.to
             : figure.gpus               ? fmt::format("{}/gpu{}", first, figure.gpus->second)
             : topology.hosts.size() > 1 ? topology.hosts[1].name + "/gpu0"
                                         : first + "/gpu1";
    Transfer transfer;
    transfer.from = find_device(topology, one.from);
    transfer.to = find_device(topology, one.to);
    transfer.operation = figure.operation;
    transfer.memory = figure.gpu_memory.value_or(true) ? MemoryKind::gpu : MemoryKind::host;
    transfer.size = figure.size;
    if (figure.gpus) transfer.operation = Operation::write;
    const Graph graph(topology);
    const Hardware hardware(graph, models);
    const auto nic = transfer.from.host != transfer.to.host
                         ? hardware.nearest_nic(transfer.from, NicUse::gpudirect)
                         : std::nullopt;
    Fitter fitter(simulator, models, figure);
    for (const Variant& variant : variants_of(topology, models, transfer, nic))
      for (const PathKind path : paths_of(figure, graph, transfer)) {
        transfer.path = path;
        // Staged ways have conditions of their own; only what is direct is tried with others.
        if (!variant.condition.empty() && (path == PathKind::tcp || path == PathKind::nvlink))
          continue;
        fitter.add(variant.topology, transfer, variant.condition);
      }
    if (const auto far = transfer.from.host != transfer.to.host
                             ? far_nic(graph, models, transfer.from)
                             : std::nullopt) {
      Transfer other = transfer;
      other.path = PathKind::gdr;
      other.via = {*far};
      if (figure.gpu_memory.value_or(true))
        fitter.add(topology, other, fmt::format("the far NIC {}", label(topology, *far)));
    }
    one.candidates = std::move(fitter.candidates);
    conclude(one);
    if (nic && get(topology, *nic).model.empty() && !get(topology, *nic).port_rate)
      one.verdict += fmt::format(
          " What NIC {} is is not known: {:.0f} Gb/s were assumed (--set {}.model=connectx-7, or "
          ".port_rate=400Gb/s).",
          label(topology, *nic), hardware.port_rate(*nic).value.bytes_per_second * 8e-9,
          label(topology, *nic));
    fits.push_back(std::move(one));
  }
  return fits;
}

}  // namespace gdr::measured
