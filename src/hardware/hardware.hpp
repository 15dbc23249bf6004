#pragma once

#include <optional>
#include <string>

#include "src/catalog/model_library.hpp"
#include "src/hardware/graph.hpp"
#include "src/hardware/pcie.hpp"

namespace gdr {

/// What the components along a route are and how long they take: topology settings over model
/// parameters. All pure.
class Hardware {
 public:
  Hardware(const Graph& graph, const ModelLibrary& models) : graph_(&graph), models_(&models) {}

  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const ModelLibrary& models() const { return *models_; }

  /// The CPU of a socket, memory or host bridge vertex.
  [[nodiscard]] const CpuModel& cpu(VertexId id) const;
  [[nodiscard]] const GpuModel& gpu(VertexId id) const;
  [[nodiscard]] const NicModel& nic(VertexId id) const;
  [[nodiscard]] const NvmeModel& nvme(VertexId id) const;
  [[nodiscard]] const SwitchModel& pci_switch(VertexId id) const;
  /// The fabric's model; generic InfiniBand values where the topology has none are never invented:
  /// the topology must have one.
  [[nodiscard]] const FabricModel& fabric() const;

  /// The link of a PCIe edge: as the file says, else what the model trains; nullopt for a virtual
  /// bridge, which has none.
  [[nodiscard]] std::optional<PcieLink> link(std::size_t edge) const;
  /// TLP bytes per second and direction of a PCIe edge; nullopt: not limiting.
  [[nodiscard]] std::optional<Bandwidth> link_bandwidth(const Hop& hop) const;
  /// The generation's TLP layout on the engine's own link.
  [[nodiscard]] const PcieModel& layout(const Route& route) const;

  /// Largest TLP payload that everything on the route takes.
  [[nodiscard]] Bytes max_payload(const Route& route) const;
  [[nodiscard]] Bytes max_read_request(VertexId engine) const;
  /// Bytes that the engine keeps requested in transfers of `size`; smaller requests on the same
  /// tags ask for less.
  [[nodiscard]] Bytes outstanding_reads(VertexId engine, Bytes size) const;
  /// Payload of the completions that come back from `target` over the data route.
  [[nodiscard]] Bytes completion_size(VertexId target, const Route& data) const;

  /// What the vertex before hop `i` of a local route takes (i == route.size(): the last vertex).
  [[nodiscard]] Duration crossing(const Route& route, std::size_t i) const;
  /// One way over a local route: device cores, switches, root ports, forwarding between root ports,
  /// socket links.
  [[nodiscard]] Duration one_way(const Route& route) const;
  /// From the request's arrival at the target to its first data.
  [[nodiscard]] Duration read_latency(VertexId target) const;
  /// From a posted write's arrival at the target's port to its visibility.
  [[nodiscard]] Duration write_latency(VertexId target) const;
  /// From a read request at its engine to the first data back there.
  [[nodiscard]] Duration round_trip(const Route& requests, const Route& data) const;
  /// Memory below this stays in the last-level cache where DMA allocates in it.
  [[nodiscard]] Bytes dma_cache() const;
  /// What a NIC holds between memory and its port.
  [[nodiscard]] Bytes nic_buffer(VertexId nic) const;
  /// Network, NIC port to NIC port, without the NICs.
  [[nodiscard]] Duration wire_latency() const;

  /// Payload per second and direction of all links between two sockets; nullopt: not stated.
  [[nodiscard]] std::optional<Bandwidth> socket_link_bandwidth(const Hop& hop) const;
  /// Payload per second and direction of the links between a GPU and its CPU.
  [[nodiscard]] Bandwidth c2c_bandwidth(const Hop& hop) const;
  /// Payload per second and direction between two GPUs over all NVLinks that join them, and one way
  /// through them.
  [[nodiscard]] Bandwidth nvlink_bandwidth(DeviceId from, DeviceId to) const;
  [[nodiscard]] Duration nvlink_latency(const Route& route) const;

  /// Reads and writes that the DRAM of one NUMA node sustains together.
  [[nodiscard]] Bandwidth memory_bandwidth(VertexId memory) const;
  /// Posted-write bound by the flow-control credits of the ports on the route; nullopt: none known.
  [[nodiscard]] std::optional<Bandwidth> credit_bound(const Route& route) const;
  /// What address translation adds to transfers of `size` that are spread over `window`, between a
  /// device and a host's memory: with the IOTLB's misses. All zero without a translating IOMMU.
  struct Translation {
    double miss_share = 0;
    Duration latency;                ///< on average
    std::optional<Bandwidth> bound;  ///< page walks at once
  };
  [[nodiscard]] Translation translation(const Route& data, Bytes size, Bytes window) const;
  /// True when a route goes from one root port to another (or back down the same one).
  [[nodiscard]] bool through_root_complex(const Route& route) const;

 private:
  [[nodiscard]] const NvlinkModel& nvlink(const Hop& hop) const;

  const Graph* graph_;
  const ModelLibrary* models_;
};

}  // namespace gdr
