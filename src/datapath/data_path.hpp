#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/common/units.hpp"
#include "src/hardware/graph.hpp"
#include "src/hardware/peer_routes.hpp"

namespace gdr {

/// How the bytes travel.
enum class PathKind {
  gdr,     ///< NICs read and write GPU memory
  staged,  ///< copy engines move the bytes through bounce buffers in host memory; between hosts,
           ///< NICs do the rest
  tcp,     ///< as staged, and the kernel's sockets copy them once more on each side
  rdma,    ///< host memory to host memory by RDMA
  p2p,     ///< one GPU's copy engine reads or writes the other's memory over PCIe
  nvlink,  ///< the same over NVLink (or xGMI), directly or through NVSwitches
  copy,    ///< a GPU's copy engine between its memory and page-locked host memory
  dma,     ///< a NIC's or a drive's own DMA engine reads or writes host memory
  gds,     ///< GPUDirect Storage: a drive's DMA engine reads or writes GPU memory
  load_store,  ///< threads of a GPU load from or store to another GPU's memory, or host memory
};
std::string_view to_string(PathKind path);
PathKind parse_path(std::string_view text);

enum class Operation { write, read, send };
std::string_view to_string(Operation operation);
Operation parse_operation(std::string_view text);

enum class MemoryKind { gpu, host };

/// Who posts the work of a transfer between hosts.
enum class Initiator {
  cpu,    ///< a thread of the host
  gpu,    ///< a GPU thread writes the work request and rings the NIC's doorbell (IBGDA, GPUNetIO)
  proxy,  ///< a GPU thread sets a flag in host memory and a polling thread of the host posts (IBRC)
};
std::string_view to_string(Initiator initiator);
Initiator parse_initiator(std::string_view text);

/// Which end of a transfer is host memory; at most one may be.
enum class HostEnd { none, from, to };

/// Who moves the bytes of a stage.
enum class Mover {
  copy_engine,  ///< a GPU's DMA engine
  nic_read,     ///< a NIC reads local memory by PCIe reads
  wire,         ///< NIC to NIC
  nic_write,    ///< a NIC writes local memory by posted writes
  socket_copy,  ///< a core copies between memory and the buffers of a socket
  cpu_copy,     ///< a core copies between pageable memory and page-locked buffers
  device_dma,   ///< a NIC's or drive's DMA engine moves bytes between memory and the device
  gpu_thread,   ///< threads of a GPU load or store
};
std::string_view to_string(Mover mover);

/// The protocol between two NICs: RDMA on queue pairs, or TCP of the kernel's sockets.
enum class Protocol { rdma, tcp };

/// One mover takes the bytes from one place to another. Code that times, counts or shows a stage
/// needs nothing else, least of all the path that it belongs to.
struct Stage {
  Mover mover = Mover::wire;
  VertexId engine = 0;  ///< the device (or, for a core's copy, the socket) that does it
  VertexId from = 0;    ///< a GPU, a NUMA node's memory, a NIC or a drive
  VertexId to = 0;
  Bytes bytes{};
  bool reads = false;  ///< PCIe reads (data comes as completions); otherwise posted writes
  Route data{};        ///< the hops that the data takes, from -> to
  Route requests{};    ///< reads: the hops of the requests, engine -> from
  std::vector<OpenQuestion>
      open{};     ///< what the file would have to state for the routes to be sure
  Bytes piece{};  ///< bytes that move at once and can then go on to the next stage
  bool joins =
      false;  ///< pieces have no cost of their own (packets, TLPs): several may be simulated as one
  std::optional<Bytes> buffer{};  ///< bytes of a message in each staging buffer that the stage
                                  ///< fills or empties; nullopt: it uses no staging buffers
  bool awaited =
      false;  ///< a thread waits for its end: to start the next stage, or to receive the message
  Protocol protocol = Protocol::rdma;  ///< of nic_read, wire and nic_write
};

/// Staging buffers: at most `count` hold bytes between the start of one stage, which fills them,
/// and the end of another, which empties them.
struct Ring {
  std::size_t first = 0;  ///< index of a stage
  std::size_t last = 0;
  VertexId memory = 0;  ///< where the buffers are
  Bytes size;           ///< of a buffer
  std::uint64_t count = 0;
};

/// What to move.
struct Transfer {
  DeviceId from;
  DeviceId to;
  PathKind path = PathKind::gdr;
  Operation operation = Operation::write;
  MemoryKind memory = MemoryKind::gpu;
  Bytes size;
  std::vector<DeviceId> via;         ///< NICs to use; a host that has none here uses its nearest
  HostEnd host_end = HostEnd::none;  ///< not none: this end is host memory. Its device is that of
                                     ///< the other end or, between hosts, a NIC near it...
  std::optional<std::size_t> numa;   ///< ...of this NUMA node (index in the host); nullopt: the
                                     ///< device's own. Also that of bounce buffers
  Initiator initiator = Initiator::cpu;
  bool inlined =
      false;  ///< the CPU puts the payload into the work request (write or send of host memory)
  std::optional<bool> push_request;  ///< the work request goes with the doorbell (BlueFlame), or
                                     ///< the NIC fetches it; nullopt: as the NIC can
  bool pageable = false;  ///< `copy`: host memory is not page-locked, so that a core copies through
                          ///< the driver's buffers
  std::optional<Bytes> window;  ///< the region of memory that the transfers are spread over;
                                ///< nullopt: small and warm in caches
};

/// "h0/gpu0", or "h0/numa0" for an end that is host memory.
std::string from_label(const Graph& graph, const Transfer& transfer);
std::string to_label(const Graph& graph, const Transfer& transfer);

/// An end of a transfer as the user names it: a device, or a NUMA node of host memory.
struct End {
  DeviceId device;
  std::optional<std::size_t> numa;  ///< index in host device.host; `device.device` is then unused
};
/// Resolves HOST/DEVICE or HOST/NUMA-NODE. Throws InputError naming what there is.
End find_end(const Topology& topology, std::string_view text);
/// Throws InputError when both ends are host memory, or one is in another host that has no NIC.
void set_ends(const Topology& topology, const End& from, const End& to, Transfer& transfer);

/// The stages in order. The data always goes from -> to. With write and send the sending side
/// initiates, with read the receiving side.
struct TransferPlan {
  Transfer transfer;
  std::vector<Stage> stages;
  std::vector<Ring> rings;
  std::set<std::string> software;  ///< models/software that it takes buffers and segments from
  std::optional<DeviceId> from_nic;
  std::optional<DeviceId> to_nic;
  std::size_t from_numa =
      0;  ///< NUMA node (index in its host) of buffers and of the driving thread
  std::size_t to_numa = 0;
};

/// The NIC that a transfer between hosts takes on the host of one of its ends: the one of `via`
/// there, else the nearest.
std::optional<DeviceId> nic_for(const Graph& graph, const ModelLibrary& models,
                                const Transfer& transfer, DeviceId end);

/// Throws InputError unless the size is from 1 B to 16 GiB.
void check_size(Bytes size);

/// A sentence on why a transfer cannot take its path on this topology; nullopt: it can. Throws
/// InputError when its ends, NICs or size are invalid for every path.
std::optional<std::string> obstacle(const Graph& graph, const ModelLibrary& models,
                                    const Transfer& transfer);

/// Plans the stages. Throws InputError with the obstacle if there is one.
TransferPlan plan_transfer(const Graph& graph, const ModelLibrary& models,
                           const Transfer& transfer);

/// The one stage in which a device reads or writes the memory of another device of its host: as in
/// gdr (a NIC), p2p or nvlink (a GPU) or gds (a drive).
TransferPlan plan_access(const Graph& graph, const ModelLibrary& models, DeviceId initiator,
                         DeviceId target, bool reads, Bytes size);

/// The paths that lead from one end to the other.
std::vector<PathKind> paths_between(const Graph& graph, const Transfer& transfer);
/// Those of them that are worth comparing: for --path all.
std::vector<PathKind> usual_paths(const Graph& graph, const Transfer& transfer);

/// Logical passes of each payload byte through host memory: one for each read or write, two for a
/// CPU copy.
int host_memory_passes(const TransferPlan& plan, const Graph& graph);

}  // namespace gdr
