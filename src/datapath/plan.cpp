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

std::optional<DeviceId> nic_for(const Graph& graph, const ModelLibrary& models,
                                const Transfer& transfer, DeviceId end) {
  for (const DeviceId& nic : transfer.via)
    if (nic.host == end.host) return nic;
  const NicUse use = transfer.path == PathKind::gdr   ? NicUse::gpudirect
                     : transfer.path == PathKind::tcp ? NicUse::sockets
                                                      : NicUse::rdma;
  return Hardware(graph, models).nearest_nic(end, use);
}

namespace {

using namespace gdr::literals;

// Drives and GPU threads, which have no piece size of their own, are taken to move a page at a
// time.
constexpr Bytes page = 4_KiB;

/// The bytes of a message in each staging buffer: a message that needs several fills them evenly,
/// in whole pages.
Bytes even_share(Bytes size, Bytes buffer) {
  const std::uint64_t buffers = (size.count + buffer.count - 1) / buffer.count;
  if (buffers <= 1) return size;
  const std::uint64_t even = (size.count + buffers - 1) / buffers;
  return std::min(buffer, Bytes{(even + page.count - 1) / page.count * page.count});
}

const NicModel& model_of(const Graph& graph, const ModelLibrary& models, DeviceId nic) {
  return Hardware(graph, models).nic(nic);
}

/// Builds the stages of one transfer in order.
class Planner {
 public:
  Planner(const Graph& graph, const ModelLibrary& models, const Transfer& transfer)
      : graph_(graph), hardware_(graph, models) {
    plan_.transfer = transfer;
    plan_.from_numa = graph.numa_of(transfer.from);
    plan_.to_numa = graph.numa_of(transfer.to);
    const bool one_host = transfer.from.host == transfer.to.host;
    if (transfer.numa && (one_host || transfer.host_end == HostEnd::from))
      plan_.from_numa = *transfer.numa;
    if (transfer.numa && (one_host || transfer.host_end == HostEnd::to))
      plan_.to_numa = *transfer.numa;
    const Topology& topology = graph.topology();
    if (topology.fabric)
      mtu_ = topology.fabric->mtu.value_or(models.fabric(topology.fabric->model).mtu.value);
  }

  /// The plan, with what can be set only when all of its stages are known.
  TransferPlan take() {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i)
      plan_.stages[i].awaited =
          i + 1 < plan_.stages.size() || plan_.transfer.operation == Operation::send;
    return std::move(plan_);
  }

  /// Between a device and host memory. It does not matter who posts the work: an engine reads what
  /// comes to its device and writes what leaves it.
  void with_host_memory() {
    const Transfer& t = plan_.transfer;
    const VertexId device = graph_.device(t.from);
    const VertexId memory = graph_.memory(t.from.host, plan_.from_numa);
    const Mover mover = t.path == PathKind::copy  ? Mover::copy_engine
                        : t.path == PathKind::dma ? Mover::device_dma
                                                  : Mover::gpu_thread;
    if (t.pageable) stage_in("cuda");
    if (t.host_end == HostEnd::from) {
      if (t.pageable) core_copy(Mover::cpu_copy, t.from.host, plan_.from_numa);
      add_read(mover, device, memory, device);
    } else {
      add_write(mover, device, device, memory);
      if (t.pageable) core_copy(Mover::cpu_copy, t.from.host, plan_.from_numa);
    }
    if (t.pageable) add_ring(0, 1, memory);
  }

  /// A NIC reads or writes device memory, whatever comes before or after.
  void nic_access(DeviceId nic, DeviceId target, bool reads) {
    plan_.from_nic = plan_.to_nic = nic;
    const VertexId engine = graph_.device(nic);
    const VertexId memory = graph_.device(target);
    if (reads) add_read(Mover::nic_read, engine, memory, engine);
    else add_write(Mover::nic_write, engine, engine, memory);
  }

  /// Between a drive and a GPU.
  void storage() {
    const Transfer& t = plan_.transfer;
    const bool from_drive = get(graph_.topology(), t.from).kind == DeviceKind::nvme;
    const DeviceId drive = from_drive ? t.from : t.to;
    const VertexId engine = graph_.device(drive);
    if (t.path == PathKind::gds) {
      const VertexId gpu = graph_.device(from_drive ? t.to : t.from);
      if (from_drive) add_write(Mover::device_dma, engine, engine, gpu);
      else add_read(Mover::device_dma, engine, gpu, engine);
      return;
    }
    if (!t.numa) plan_.from_numa = plan_.to_numa = graph_.numa_of(from_drive ? t.to : t.from);
    const VertexId memory = graph_.memory(drive.host, plan_.from_numa);
    stage_in("cufile");
    if (from_drive) {
      add_write(Mover::device_dma, engine, engine, memory);
      copy_in();
    } else {
      copy_out();
      add_read(Mover::device_dma, engine, memory, engine);
    }
    add_ring(0, 1, memory);
  }

  void between_gpus_of_one_host() {
    const Transfer& t = plan_.transfer;
    if (t.path == PathKind::staged) {
      stage_in("cuda");
      copy_out();
      plan_.to_numa = plan_.from_numa;  // one buffer
      copy_in();
      add_ring(0, 1, graph_.memory(t.from.host, plan_.from_numa));
    } else if (t.path == PathKind::nvlink ||
               (t.path == PathKind::load_store && nvlink_count(graph_, t.from, t.to) > 0)) {
      const Mover mover = t.path == PathKind::nvlink ? Mover::copy_engine : Mover::gpu_thread;
      const bool read = t.operation == Operation::read;
      const Route route = *graph_.nvlink_route(graph_.device(t.from), graph_.device(t.to));
      add({.mover = mover,
           .engine = graph_.device(read ? t.to : t.from),
           .from = graph_.device(t.from),
           .to = graph_.device(t.to),
           .reads = read,
           .data = route,
           .requests = read ? reversed(route) : Route{}});
    } else {
      const Mover mover = t.path == PathKind::load_store ? Mover::gpu_thread : Mover::copy_engine;
      if (t.operation == Operation::read)
        add_read(mover, graph_.device(t.to), graph_.device(t.from), graph_.device(t.to));
      else add_write(mover, graph_.device(t.from), graph_.device(t.from), graph_.device(t.to));
    }
  }

  void between_hosts() {
    const Transfer& t = plan_.transfer;
    plan_.from_nic = nic_for(graph_, hardware_.models(), t, t.from);
    plan_.to_nic = nic_for(graph_, hardware_.models(), t, t.to);
    const bool bounce = t.memory == MemoryKind::gpu && t.path != PathKind::gdr;
    const bool sockets = t.path == PathKind::tcp;
    if (sockets) {
      protocol_ = Protocol::tcp;
      tcp_segment_ = stated(software("linux"), &SoftwareModel::tcp_segment, "tcp_segment");
    }
    if (bounce) stage_in(t.operation == Operation::send ? "messages" : "nccl");
    if (bounce) copy_out();
    if (sockets) core_copy(Mover::socket_copy, t.from.host, plan_.from_numa);
    const std::size_t sockets_end = plan_.stages.size();
    // With gdr an end is the memory of its GPU, unless it is host memory by itself.
    const bool gdr = t.path == PathKind::gdr;
    const VertexId source = gdr && t.host_end != HostEnd::from
                                ? graph_.device(t.from)
                                : graph_.memory(t.from.host, plan_.from_numa);
    const VertexId target = gdr && t.host_end != HostEnd::to
                                ? graph_.device(t.to)
                                : graph_.memory(t.to.host, plan_.to_numa);
    const VertexId from_nic = graph_.device(*plan_.from_nic);
    const VertexId to_nic = graph_.device(*plan_.to_nic);
    // With inline the CPU puts the payload into the work request: the NIC reads nothing.
    if (!t.inlined) add_read(Mover::nic_read, from_nic, source, from_nic);
    add_wire(from_nic, to_nic);
    const std::size_t wire_end = plan_.stages.size();
    add_write(Mover::nic_write, to_nic, to_nic, target);
    if (sockets) core_copy(Mover::socket_copy, t.to.host, plan_.to_numa);
    if (bounce) copy_in();
    if (!bounce) return;
    // A socket takes the bytes out of the sender's buffer; a NIC needs them until they are sent.
    add_ring(0, (sockets ? sockets_end : wire_end) - 1, source);
    add_ring(sockets ? wire_end + 1 : sockets_end, plan_.stages.size() - 1, target);
  }

 private:
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
  void core_copy(Mover mover, std::size_t host, std::size_t numa) {
    const VertexId memory = graph_.memory(host, numa);
    add({.mover = mover,
         .engine = graph_.socket(host, graph_.socket_of_numa(host, numa)),
         .from = memory,
         .to = memory});
  }
  void add_wire(VertexId from, VertexId to) {
    const auto route = graph_.wire_route(from, to);
    if (!route)
      throw InputError(
          fmt::format("{} has no \"fabric\": nothing joins its hosts; add one, as in \"fabric\": "
                      "{{\"model\": \"infiniband\"}}",
                      graph_.topology().name));
    add({.mover = Mover::wire, .engine = from, .from = from, .to = to, .data = *route});
  }

  const SoftwareModel& software(const std::string& name) {
    plan_.software.insert(name);
    return hardware_.software(name);
  }

  /// Makes the following stages use the staging buffers of that software, or those that the
  /// topology sets.
  void stage_in(const std::string& name) {
    const SoftwareModel& model = software(name);
    const Staging staging = graph_.topology().staging.value_or(Staging{});
    buffer_ = staging.chunk.value_or(stated(model, &SoftwareModel::buffer_size, "buffer_size"));
    buffers_ = static_cast<std::uint64_t>(
        staging.depth ? *staging.depth : stated(model, &SoftwareModel::buffers, "buffers"));
    share_ = even_share(plan_.transfer.size, buffer_);
  }
  void add_ring(std::size_t first, std::size_t last, VertexId memory) {
    plan_.rings.push_back({first, last, memory, buffer_, buffers_});
  }

  /// Completes a stage with the pieces that its mover makes.
  void add(Stage stage) {
    const Bytes size = plan_.transfer.size;
    stage.bytes = size;
    stage.buffer = share_;
    stage.protocol = protocol_;
    switch (stage.mover) {
      case Mover::copy_engine:
      case Mover::cpu_copy:
        stage.piece = share_.value_or(size);
        break;
      case Mover::nic_read:
      case Mover::wire:
      case Mover::nic_write:
        stage.joins = protocol_ == Protocol::rdma;
        stage.piece = stage.joins ? mtu_ : std::min(tcp_segment_, std::max(size, mtu_));
        break;
      case Mover::socket_copy:
        stage.piece = std::min(tcp_segment_, size);
        break;
      case Mover::device_dma:
        stage.joins = !share_ && graph_.vertex(stage.engine).kind == VertexKind::nvme;
        stage.piece = share_.value_or(page);
        break;
      case Mover::gpu_thread:
        stage.joins = true;
        stage.piece = page;
        break;
    }
    plan_.stages.push_back(std::move(stage));
  }

  /// A GPU on C2C is reached through its CPU; ACS does not matter there.
  bool add_over_c2c(Mover mover, VertexId engine, VertexId from, VertexId to, bool reads) {
    if (!graph_.has_c2c(from) && !graph_.has_c2c(to)) return false;
    const auto route = graph_.data_route(from, to);
    check(route.has_value(), "a transfer between hosts");
    add({.mover = mover,
         .engine = engine,
         .from = from,
         .to = to,
         .reads = reads,
         .data = *route,
         .requests = reads ? reversed(*route) : Route{}});
    return true;
  }

  void add_write(Mover mover, VertexId engine, VertexId from, VertexId to) {
    if (add_over_c2c(mover, engine, from, to, false)) return;
    PeerRoutes routes = hardware_.peer_routes(from, to);
    std::vector<OpenQuestion> open = routes.requests_open();
    add({.mover = mover,
         .engine = engine,
         .from = from,
         .to = to,
         .data = std::move(routes.request),
         .open = std::move(open)});
  }

  void add_read(Mover mover, VertexId engine, VertexId from, VertexId to) {
    if (add_over_c2c(mover, engine, from, to, true)) return;
    PeerRoutes routes = hardware_.peer_routes(engine, from);
    add({.mover = mover,
         .engine = engine,
         .from = from,
         .to = to,
         .reads = true,
         .data = std::move(routes.completion),
         .requests = std::move(routes.request),
         .open = std::move(routes.open)});
  }

  const Graph& graph_;
  const Hardware hardware_;
  TransferPlan plan_;
  Bytes mtu_{4096};
  Bytes tcp_segment_;
  Bytes buffer_;
  std::uint64_t buffers_ = 0;
  std::optional<Bytes> share_;  ///< what a buffer gets, once staging has begun
  Protocol protocol_ = Protocol::rdma;
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
            fmt::format("{} and {} are NICs of one host; a transfer takes one NIC per host; use "
                        "a flow for each (--flows)",
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
    const bool host_memory = t.host_end == (id == t.from ? HostEnd::from : HostEnd::to) ||
                             (within && t.host_end != HostEnd::none);
    if (!host_memory && t.memory == MemoryKind::gpu && kind != DeviceKind::gpu && !drive)
      refuse_end(graph, id,
                 "and GPU memory needs a GPU; use --memory host for the host memory near it");
  }
  if (t.from == t.to && t.host_end == HostEnd::none)
    throw InputError(
        fmt::format("{} is both ends; there is nothing to move", label(graph.topology(), t.from)));
  check_via(graph, t);
}

/// Why the path cannot carry such a transfer on any topology; nullopt: it can.
std::optional<std::string> obstacle_of_kind(const Graph& graph, const Transfer& t) {
  const bool within = t.from.host == t.to.host;
  if (t.initiator != Initiator::cpu &&
      (within || t.path != PathKind::gdr || t.host_end != HostEnd::none))
    return fmt::format("the initiator {} goes with the path gdr between GPUs of two hosts",
                       to_string(t.initiator));
  if (t.inlined && (t.path != PathKind::rdma || t.operation == Operation::read))
    return "only a write or send of host memory (path rdma) can be inline";
  if (t.pageable && t.path != PathKind::copy) return "only the path copy has pageable memory";
  const std::vector<PathKind> possible = paths_between(graph, t);
  if (std::find(possible.begin(), possible.end(), t.path) == possible.end()) {
    std::vector<std::string_view> names;
    for (const PathKind path : possible) names.push_back(to_string(path));
    const bool host_memory = t.host_end != HostEnd::none || t.memory == MemoryKind::host;
    return fmt::format("the path {} does not lead from {} to {} ({} memory, {}); there are: {}",
                       to_string(t.path), from_label(graph, t), to_label(graph, t),
                       host_memory ? "host" : "GPU", within ? "one host" : "two hosts",
                       fmt::join(names, ", "));
  }
  if (t.host_end == HostEnd::none && within && t.memory == MemoryKind::host)
    return fmt::format("{} and {} are on one host; host memory to host memory needs two hosts",
                       label(graph.topology(), t.from), label(graph.topology(), t.to));
  return std::nullopt;
}

/// The obstacle on one side of a transfer between hosts: there is no NIC, or its NIC does not have
/// the fabric's link layer.
std::optional<std::string> obstacle_of_side(const Graph& graph, const ModelLibrary& models,
                                            const Transfer& t, DeviceId end) {
  const Topology& topology = graph.topology();
  const auto nic = nic_for(graph, models, t, end);
  if (!nic)
    return fmt::format("host {} has no NIC{}; the path {} needs one",
                       topology.hosts.at(end.host).name,
                       t.path == PathKind::tcp ? "" : " that does RDMA", to_string(t.path));
  if (!topology.fabric) return std::nullopt;
  const std::string& wanted = models.fabric(topology.fabric->model).link_layer.value;
  const Device& device = get(topology, *nic);
  const std::string has = device.link_layer ? std::string(to_string(*device.link_layer))
                                            : model_of(graph, models, *nic).link_layers.value;
  if (has.find(wanted) != std::string::npos) return std::nullopt;
  return fmt::format(
      "{} speaks {} and the fabric {} is {}; choose another fabric (--set "
      "fabric.model=...) or NIC (--via)",
      label(topology, *nic), has, topology.fabric->model, wanted);
}

}  // namespace

std::optional<std::string> obstacle(const Graph& graph, const ModelLibrary& models,
                                    const Transfer& t) {
  check_ends(graph, t);
  if (auto found = obstacle_of_kind(graph, t)) return found;
  if (t.from.host == t.to.host) return std::nullopt;
  for (const DeviceId end : {t.from, t.to})
    if (auto found = obstacle_of_side(graph, models, t, end)) return found;
  const DeviceId nic = *nic_for(graph, models, t, t.from);
  const Bytes most = model_of(graph, models, nic).inline_threshold.value;
  if (t.inlined && t.size > most)
    return fmt::format("{} takes at most {} inline, and the message has {}",
                       label(graph.topology(), nic), to_string(most), to_string(t.size));
  if (!graph.topology().fabric)
    return fmt::format(
        "{} has no \"fabric\": nothing joins its hosts; add one, as in \"fabric\": "
        "{{\"model\": \"infiniband\"}}",
        graph.topology().name);
  return std::nullopt;
}

TransferPlan plan_transfer(const Graph& graph, const ModelLibrary& models,
                           const Transfer& transfer) {
  if (const auto found = obstacle(graph, models, transfer)) throw InputError(*found);
  const auto is_drive = [&](DeviceId end) {
    return get(graph.topology(), end).kind == DeviceKind::nvme;
  };
  Planner planner(graph, models, transfer);
  if (transfer.from.host != transfer.to.host) planner.between_hosts();
  else if (transfer.host_end != HostEnd::none) planner.with_host_memory();
  else if (is_drive(transfer.from) || is_drive(transfer.to)) planner.storage();
  else planner.between_gpus_of_one_host();
  return planner.take();
}

TransferPlan plan_access(const Graph& graph, const ModelLibrary& models, DeviceId initiator,
                         DeviceId target, bool reads, Bytes size) {
  Transfer transfer;
  transfer.from = reads ? target : initiator;
  transfer.to = reads ? initiator : target;
  transfer.operation = reads ? Operation::read : Operation::write;
  transfer.size = size;
  const DeviceKind kind = get(graph.topology(), initiator).kind;
  if (kind == DeviceKind::nic) {
    transfer.operation = Operation::write;
    Planner planner(graph, models, transfer);
    planner.nic_access(initiator, target, reads);
    return planner.take();
  }
  transfer.path = kind == DeviceKind::nvme                     ? PathKind::gds
                  : nvlink_count(graph, initiator, target) > 0 ? PathKind::nvlink
                                                               : PathKind::p2p;
  return plan_transfer(graph, models, transfer);
}

int host_memory_passes(const TransferPlan& plan, const Graph& graph) {
  int passes = 0;
  for (const Stage& stage : plan.stages)
    for (const VertexId end : {stage.from, stage.to})
      if (graph.vertex(end).kind == VertexKind::memory) ++passes;
  return passes;
}

}  // namespace gdr
