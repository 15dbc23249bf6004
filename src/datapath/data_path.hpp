#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/units.hpp"
#include "topology/graph.hpp"
#include "topology/model_library.hpp"

namespace gdr {

/// How the bytes travel.
enum class PathKind {
  gdr,     ///< NICs read and write GPU memory
  staged,  ///< copy engines move the bytes through bounce buffers in host memory; between hosts, NICs do the rest
  tcp,     ///< as staged, and the kernel's sockets copy them once more on each side
  rdma,    ///< host memory to host memory by RDMA
  p2p,     ///< one GPU's copy engine reads or writes the other's memory over PCIe
  nvlink,  ///< the same over NVLink (or xGMI), directly or through NVSwitches
};
std::string_view to_string(PathKind path);
PathKind parse_path(std::string_view text);

enum class Operation { write, read, send };
std::string_view to_string(Operation operation);
Operation parse_operation(std::string_view text);

enum class MemoryKind { gpu, host };

/// Who moves the bytes of a stage.
enum class Mover {
  copy_engine,  ///< a GPU's DMA engine
  nic_read,     ///< a NIC reads local memory by PCIe reads
  wire,         ///< NIC to NIC
  nic_write,    ///< a NIC writes local memory by posted writes
  cpu_copy,     ///< a core copies between buffers of host memory
};
std::string_view to_string(Mover mover);

/// One mover takes the bytes from one place to another.
struct Stage {
  Mover mover = Mover::wire;
  VertexId engine = 0;  ///< the device (or, for cpu_copy, the socket) that does it
  VertexId from = 0;    ///< a GPU, a NUMA node's memory or a NIC
  VertexId to = 0;
  Bytes bytes;
  bool reads = false;      ///< PCIe reads (data comes as completions); otherwise posted writes
  Route data;              ///< the hops that the data takes, from -> to
  Route requests;          ///< reads: the hops of the requests, engine -> from
  std::optional<bool> redirected;  ///< ACS sends it up to the root port; nullopt: not known
};

/// What to move.
struct Transfer {
  DeviceId from;
  DeviceId to;
  PathKind path = PathKind::gdr;
  Operation operation = Operation::write;
  MemoryKind memory = MemoryKind::gpu;
  Bytes size;
  std::vector<DeviceId> via;  ///< NICs to use; a host that has none here uses its nearest
};

/// The stages in order. The data always goes from -> to. With write and send the sending side starts the work, with read the
/// receiving side does.
struct TransferPlan {
  Transfer transfer;
  std::vector<Stage> stages;
  std::optional<DeviceId> from_nic;
  std::optional<DeviceId> to_nic;
  std::size_t from_numa = 0;  ///< NUMA node (index in its host) of buffers and of the driving thread
  std::size_t to_numa = 0;
};

/// The NIC of the host that is nearest to a device, among those that can do RDMA (`rdma` true) or any. GPUs that share their set of
/// nearest NICs take them in turn. nullopt: the host has none.
std::optional<DeviceId> nearest_nic(const Graph& graph, const ModelLibrary& models, DeviceId device, bool rdma);

/// Throws InputError unless the size is from 1 B to 16 GiB.
void check_size(Bytes size);

/// Lays out the stages. Throws InputError when the path does not exist on this topology, saying why.
TransferPlan plan_transfer(const Graph& graph, const ModelLibrary& models, const Transfer& transfer);

/// The paths that make sense between two devices, for --path all.
std::vector<PathKind> paths_between(const Graph& graph, DeviceId from, DeviceId to, MemoryKind memory);

/// Logical passes of each payload byte through host memory: one for each read or write of it, two for a CPU copy.
int host_memory_passes(const TransferPlan& plan, const Graph& graph);

}  // namespace gdr
