#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/common/check.hpp"
#include "src/common/error.hpp"
#include "src/datapath/data_path.hpp"
#include "src/hardware/distance.hpp"
#include "src/hardware/hardware.hpp"

// A transfer becomes a list of stages.

namespace gdr {
namespace {

/// Builds the stages of one transfer in order.
class Planner {
 public:
  Planner(const Graph& graph, const ModelLibrary& models, const Transfer& transfer)
      : graph_(graph), hardware_(graph, models) {
    plan_.transfer = transfer;
    plan_.from_numa = graph.numa_of(transfer.from);
    plan_.to_numa = graph.numa_of(transfer.to);
    if (transfer.numa && transfer.from.host == transfer.to.host)
      plan_.from_numa = plan_.to_numa = *transfer.numa;
  }

  /// Between a device and host memory. Who writes the work down decides nothing here: an engine
  /// reads what comes to it and writes what leaves it.
  TransferPlan with_host_memory() {
    const Transfer& t = plan_.transfer;
    const VertexId device = graph_.device(t.from);
    const VertexId memory = graph_.memory(t.from.host, plan_.from_numa);
    const Mover mover = t.path == PathKind::copy  ? Mover::copy_engine
                        : t.path == PathKind::dma ? Mover::device_dma
                                                  : Mover::gpu_thread;
    if (t.host_end == HostEnd::from) {
      if (t.pageable) cpu_copy(t.from.host, plan_.from_numa);
      add_read(mover, device, memory, device);
    } else {
      add_write(mover, device, device, memory);
      if (t.pageable) cpu_copy(t.from.host, plan_.from_numa);
    }
    return std::move(plan_);
  }

  /// Between a drive and a GPU.
  TransferPlan storage() {
    const Transfer& t = plan_.transfer;
    const bool from_drive = get(graph_.topology(), t.from).kind == DeviceKind::nvme;
    const DeviceId drive = from_drive ? t.from : t.to;
    const VertexId engine = graph_.device(drive);
    if (t.path == PathKind::gds) {
      const VertexId gpu = graph_.device(from_drive ? t.to : t.from);
      if (from_drive) add_write(Mover::device_dma, engine, engine, gpu);
      else add_read(Mover::device_dma, engine, gpu, engine);
      return std::move(plan_);
    }
    if (!t.numa) plan_.from_numa = plan_.to_numa = graph_.numa_of(from_drive ? t.to : t.from);
    const VertexId memory = graph_.memory(drive.host, plan_.from_numa);
    if (from_drive) {
      add_write(Mover::device_dma, engine, engine, memory);
      copy_in();
    } else {
      copy_out();
      add_read(Mover::device_dma, engine, memory, engine);
    }
    return std::move(plan_);
  }

  TransferPlan between_gpus_of_one_host() {
    const Transfer& t = plan_.transfer;
    if (t.path == PathKind::staged) {
      copy_out();
      plan_.to_numa = plan_.from_numa;  // one buffer
      copy_in();
    } else if (t.path == PathKind::nvlink ||
               (t.path == PathKind::load_store && nvlink_count(graph_, t.from, t.to) > 0)) {
      const Mover mover = t.path == PathKind::nvlink ? Mover::copy_engine : Mover::gpu_thread;
      const bool read = t.operation == Operation::read;
      const Route route = *graph_.nvlink_route(graph_.device(t.from), graph_.device(t.to));
      plan_.stages.push_back({mover,
                              graph_.device(read ? t.to : t.from),
                              graph_.device(t.from),
                              graph_.device(t.to),
                              t.size,
                              read,
                              route,
                              read ? reversed(route) : Route{},
                              {}});
    } else {
      const Mover mover = t.path == PathKind::load_store ? Mover::gpu_thread : Mover::copy_engine;
      if (t.operation == Operation::read)
        add_read(mover, graph_.device(t.to), graph_.device(t.from), graph_.device(t.to));
      else add_write(mover, graph_.device(t.from), graph_.device(t.from), graph_.device(t.to));
    }
    return std::move(plan_);
  }

  TransferPlan between_hosts() {
    const Transfer& t = plan_.transfer;
    plan_.from_nic = choose_nic(t.from);
    plan_.to_nic = choose_nic(t.to);
    const bool bounce = t.memory == MemoryKind::gpu && t.path != PathKind::gdr;
    const bool sockets = t.path == PathKind::tcp;
    if (bounce) copy_out();
    if (sockets) cpu_copy(t.from.host, plan_.from_numa);
    const VertexId source = t.path == PathKind::gdr ? graph_.device(t.from)
                                                    : graph_.memory(t.from.host, plan_.from_numa);
    const VertexId target =
        t.path == PathKind::gdr ? graph_.device(t.to) : graph_.memory(t.to.host, plan_.to_numa);
    const VertexId from_nic = graph_.device(*plan_.from_nic);
    const VertexId to_nic = graph_.device(*plan_.to_nic);
    if (t.inlined) check_inline(*plan_.from_nic);
    else add_read(Mover::nic_read, from_nic, source, from_nic);
    const auto wire = graph_.wire_route(from_nic, to_nic);
    if (!wire)
      throw InputError(
          fmt::format("{} has no \"fabric\": nothing joins its hosts; add one, as in \"fabric\": "
                      "{{\"model\": \"infiniband\"}}",
                      graph_.topology().name));
    plan_.stages.push_back({Mover::wire, from_nic, from_nic, to_nic, t.size, false, *wire, {}, {}});
    add_write(Mover::nic_write, to_nic, to_nic, target);
    if (sockets) cpu_copy(t.to.host, plan_.to_numa);
    if (bounce) copy_in();
    return std::move(plan_);
  }

 private:
  /// A NIC speaks the fabric's link layer or none of its traffic gets out.
  void check_fabric(DeviceId nic) const {
    const Topology& topology = graph_.topology();
    if (!topology.fabric) return;
    const std::string& wanted = hardware_.fabric().link_layer.value;
    const Device& device = get(topology, nic);
    const std::string has = device.link_layer ? std::string(to_string(*device.link_layer))
                                              : hardware_.nic(nic).link_layers.value;
    if (has.find(wanted) == std::string::npos)
      throw InputError(
          fmt::format("{} speaks {} and the fabric {} is {}; choose another fabric (--set "
                      "fabric.model=...) or NIC (--via)",
                      label(topology, nic), has, topology.fabric->model, wanted));
  }

  void check_inline(DeviceId nic) const {
    const Bytes most = hardware_.nic(nic).inline_threshold.value;
    if (plan_.transfer.size > most)
      throw InputError(fmt::format("{} takes at most {} inline, and {} are to go",
                                   label(graph_.topology(), nic), to_string(most),
                                   to_string(plan_.transfer.size)));
  }

  DeviceId choose_nic(DeviceId device) {
    for (const DeviceId& nic : plan_.transfer.via) {
      if (nic.host != device.host) continue;
      check_fabric(nic);
      return nic;
    }
    const PathKind path = plan_.transfer.path;
    const bool rdma = path != PathKind::tcp;
    const auto nic = hardware_.nearest_nic(device, path == PathKind::gdr ? NicUse::gpudirect
                                                   : rdma                ? NicUse::rdma
                                                                         : NicUse::sockets);
    if (nic) check_fabric(*nic);
    if (!nic)
      throw InputError(fmt::format("host {} has no NIC{}; the path {} needs one",
                                   graph_.topology().hosts.at(device.host).name,
                                   rdma ? " that does RDMA" : "", to_string(path)));
    return *nic;
  }

  void copy_out() {
    const DeviceId from = plan_.transfer.from;
    add_write(Mover::copy_engine, graph_.device(from), graph_.device(from),
              graph_.memory(from.host, plan_.from_numa));
  }
  void copy_in() {
    const DeviceId to = plan_.transfer.to;
    add_read(Mover::copy_engine, graph_.device(to), graph_.memory(to.host, plan_.to_numa),
             graph_.device(to));
  }
  void cpu_copy(std::size_t host, std::size_t numa) {
    const VertexId memory = graph_.memory(host, numa);
    const VertexId socket = graph_.socket(host, graph_.socket_of_numa(host, numa));
    plan_.stages.push_back(
        {Mover::cpu_copy, socket, memory, memory, plan_.transfer.size, false, {}, {}, {}});
  }

  /// A GPU on C2C is reached over its CPU; ACS has no part in that.
  bool add_over_c2c(Mover mover, VertexId engine, VertexId from, VertexId to, bool reads) {
    if (!graph_.has_c2c(from) && !graph_.has_c2c(to)) return false;
    const auto route = graph_.data_route(from, to);
    check(route.has_value(), "a transfer between hosts");
    plan_.stages.push_back({mover,
                            engine,
                            from,
                            to,
                            plan_.transfer.size,
                            reads,
                            *route,
                            reads ? reversed(*route) : Route{},
                            {}});
    return true;
  }

  void add_write(Mover mover, VertexId engine, VertexId from, VertexId to) {
    if (add_over_c2c(mover, engine, from, to, false)) return;
    PeerRoutes routes = hardware_.peer_routes(from, to);
    plan_.stages.push_back({mover,
                            engine,
                            from,
                            to,
                            plan_.transfer.size,
                            false,
                            std::move(routes.request),
                            {},
                            routes.requests_open()});
  }

  void add_read(Mover mover, VertexId engine, VertexId from, VertexId to) {
    if (add_over_c2c(mover, engine, from, to, true)) return;
    PeerRoutes routes = hardware_.peer_routes(engine, from);
    plan_.stages.push_back({mover, engine, from, to, plan_.transfer.size, true,
                            std::move(routes.completion), std::move(routes.request),
                            std::move(routes.open)});
  }

  const Graph& graph_;
  const Hardware hardware_;
  TransferPlan plan_;
};

}  // namespace

void check_size(Bytes size) {
  if (size.count == 0) throw InputError("a transfer of 0 bytes takes no path; give at least 1B");
  if (size.count > (std::uint64_t{16} << 30U))
    throw InputError(fmt::format("{} is more than 16GiB, the largest transfer", to_string(size)));
}

namespace {

[[noreturn]] void refuse_end(const Graph& graph, DeviceId id, std::string_view need) {
  throw InputError(fmt::format("{} is a {}, {}", label(graph.topology(), id),
                               to_string(get(graph.topology(), id).kind), need));
}

void check_via(const Graph& graph, const Transfer& t) {
  for (std::size_t i = 0; i < t.via.size(); ++i) {
    if (get(graph.topology(), t.via[i]).kind != DeviceKind::nic)
      refuse_end(graph, t.via[i], "and --via takes NICs");
    if (t.via[i].host != t.from.host && t.via[i].host != t.to.host)
      refuse_end(graph, t.via[i], "on a host that has no part in this transfer");
    for (std::size_t j = 0; j < i; ++j)
      if (t.via[i].host == t.via[j].host)
        throw InputError(
            fmt::format("{} and {} are NICs of one host; a transfer takes one NIC a host, use a "
                        "flow for each (--flows)",
                        label(graph.topology(), t.via[j]), label(graph.topology(), t.via[i])));
  }
}

void check_ends(const Graph& graph, const Transfer& t) {
  check_size(t.size);
  const bool within = t.from.host == t.to.host;
  for (const DeviceId id : {t.from, t.to}) {
    const DeviceKind kind = get(graph.topology(), id).kind;
    if (kind == DeviceKind::host_bridge) refuse_end(graph, id, "which is no end of a transfer");
    const bool drive = within && kind == DeviceKind::nvme;
    if (t.host_end == HostEnd::none && t.memory == MemoryKind::gpu && kind != DeviceKind::gpu &&
        !drive)
      refuse_end(graph, id,
                 "and GPU memory needs a GPU; use --memory host for the host memory near it");
  }
  if (t.from == t.to && t.host_end == HostEnd::none)
    throw InputError(
        fmt::format("{} is both ends; there is nothing to move", label(graph.topology(), t.from)));
  if (t.initiator != Initiator::cpu && (within || t.path != PathKind::gdr))
    throw InputError(fmt::format("the initiator {} goes with the path gdr between hosts",
                                 to_string(t.initiator)));
  if (t.inlined && (t.path != PathKind::rdma || t.operation == Operation::read))
    throw InputError("only a write or send of host memory (path rdma) can be inline");
  if (t.pageable && t.path != PathKind::copy)
    throw InputError("only the path copy has pageable memory");
  check_via(graph, t);
}

}  // namespace

TransferPlan plan_transfer(const Graph& graph, const ModelLibrary& models,
                           const Transfer& transfer) {
  check_ends(graph, transfer);
  const std::vector<PathKind> possible = paths_between(graph, transfer);
  if (std::find(possible.begin(), possible.end(), transfer.path) == possible.end()) {
    std::vector<std::string_view> names;
    for (const PathKind path : possible) names.push_back(to_string(path));
    const bool host_memory =
        transfer.host_end != HostEnd::none || transfer.memory == MemoryKind::host;
    throw InputError(fmt::format(
        "the path {} does not lead from {} to {} ({} memory, {}); there are: {}",
        to_string(transfer.path), from_label(graph, transfer), to_label(graph, transfer),
        host_memory ? "host" : "GPU",
        transfer.from.host == transfer.to.host ? "one host" : "two hosts", fmt::join(names, ", ")));
  }
  Planner planner(graph, models, transfer);
  if (transfer.host_end != HostEnd::none) return planner.with_host_memory();
  if (transfer.from.host != transfer.to.host) return planner.between_hosts();
  if (transfer.memory == MemoryKind::host)
    throw InputError(
        fmt::format("{} and {} are on one host; host memory to host memory needs two hosts",
                    label(graph.topology(), transfer.from), label(graph.topology(), transfer.to)));
  const bool drive = get(graph.topology(), transfer.from).kind == DeviceKind::nvme ||
                     get(graph.topology(), transfer.to).kind == DeviceKind::nvme;
  return drive ? planner.storage() : planner.between_gpus_of_one_host();
}

int host_memory_passes(const TransferPlan& plan, const Graph& graph) {
  int passes = 0;
  for (const Stage& stage : plan.stages)
    for (const VertexId end : {stage.from, stage.to})
      if (graph.vertex(end).kind == VertexKind::memory) ++passes;
  return passes;
}

}  // namespace gdr
