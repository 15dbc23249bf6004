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

using namespace gdr::literals;

// NCCL's defaults: a buffer of 4 MiB (NCCL_BUFFSIZE) in 8 steps.
constexpr Bytes default_buffer = 512_KiB;
constexpr std::uint64_t default_buffers = 8;
// Messaging libraries and the CUDA driver fill one buffer while the other is emptied.
constexpr std::uint64_t double_buffer = 2;
// cuFile keeps 128 MiB of page-locked buffers for drives that it cannot reach directly
// (max_device_pinned_mem_size is of that order).
constexpr std::uint64_t storage_buffers = 256;
// Linux hands segments of up to 64 KiB to and from NICs (GSO, GRO).
constexpr Bytes tcp_segment = 64_KiB;
// What engines without pieces of their own (drives, GPU threads) are taken to move at once: a page.
constexpr Bytes page = 4_KiB;

/// What each staging buffer gets of a message: at most a buffer; a message that needs several fills
/// them evenly, in whole pages.
Bytes even_share(Bytes size, Bytes buffer) {
  const std::uint64_t buffers = (size.count + buffer.count - 1) / buffer.count;
  if (buffers <= 1) return size;
  const std::uint64_t even = (size.count + buffers - 1) / buffers;
  return std::min(buffer, Bytes{(even + page.count - 1) / page.count * page.count});
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
    if (topology.staging && topology.staging->chunk) buffer_ = *topology.staging->chunk;
    if (topology.fabric)
      mtu_ = topology.fabric->mtu.value_or(models.fabric(topology.fabric->model).mtu.value);
  }

  /// The plan, with what can be said only when all of its stages are known.
  TransferPlan take() {
    for (std::size_t i = 0; i < plan_.stages.size(); ++i)
      plan_.stages[i].awaited =
          i + 1 < plan_.stages.size() || plan_.transfer.operation == Operation::send;
    return std::move(plan_);
  }

  /// Between a device and host memory. Who writes the work down decides nothing here: an engine
  /// reads what comes to it and writes what leaves it.
  void with_host_memory() {
    const Transfer& t = plan_.transfer;
    const VertexId device = graph_.device(t.from);
    const VertexId memory = graph_.memory(t.from.host, plan_.from_numa);
    const Mover mover = t.path == PathKind::copy  ? Mover::copy_engine
                        : t.path == PathKind::dma ? Mover::device_dma
                                                  : Mover::gpu_thread;
    if (t.pageable) stage_in(double_buffer);
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
    stage_in(storage_buffers);
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
      stage_in(double_buffer);
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
    plan_.from_nic = choose_nic(t.from);
    plan_.to_nic = choose_nic(t.to);
    const bool bounce = t.memory == MemoryKind::gpu && t.path != PathKind::gdr;
    const bool sockets = t.path == PathKind::tcp;
    if (sockets) protocol_ = Protocol::tcp;
    if (bounce) stage_in(t.operation == Operation::send ? double_buffer : default_buffers);
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
    if (t.inlined) check_inline(*plan_.from_nic);
    else add_read(Mover::nic_read, from_nic, source, from_nic);
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

  /// What follows goes through staging buffers.
  void stage_in(std::uint64_t buffers) {
    const auto& staging = graph_.topology().staging;
    buffers_ = staging && staging->depth ? static_cast<std::uint64_t>(*staging->depth) : buffers;
    share_ = even_share(plan_.transfer.size, buffer_);
  }
  void add_ring(std::size_t first, std::size_t last, VertexId memory) {
    plan_.rings.push_back({first, last, memory, buffer_, buffers_});
  }

  /// Completes a stage with how its mover cuts the bytes.
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
        stage.piece = stage.joins ? mtu_ : std::min(tcp_segment, std::max(size, mtu_));
        break;
      case Mover::socket_copy:
        stage.piece = std::min(tcp_segment, size);
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

  /// A GPU on C2C is reached over its CPU; ACS has no part in that.
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
  Bytes buffer_ = default_buffer;
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
    const bool host_memory = t.host_end == (id == t.from ? HostEnd::from : HostEnd::to) ||
                             (within && t.host_end != HostEnd::none);
    if (!host_memory && t.memory == MemoryKind::gpu && kind != DeviceKind::gpu && !drive)
      refuse_end(graph, id,
                 "and GPU memory needs a GPU; use --memory host for the host memory near it");
  }
  if (t.from == t.to && t.host_end == HostEnd::none)
    throw InputError(
        fmt::format("{} is both ends; there is nothing to move", label(graph.topology(), t.from)));
  if (t.initiator != Initiator::cpu &&
      (within || t.path != PathKind::gdr || t.host_end != HostEnd::none))
    throw InputError(
        fmt::format("the initiator {} goes with the path gdr between GPUs of two hosts",
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
  const bool one_host = transfer.from.host == transfer.to.host;
  if (one_host && transfer.host_end == HostEnd::none && transfer.memory == MemoryKind::host)
    throw InputError(
        fmt::format("{} and {} are on one host; host memory to host memory needs two hosts",
                    label(graph.topology(), transfer.from), label(graph.topology(), transfer.to)));
  const auto is_drive = [&](DeviceId end) {
    return get(graph.topology(), end).kind == DeviceKind::nvme;
  };
  Planner planner(graph, models, transfer);
  if (!one_host) planner.between_hosts();
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
