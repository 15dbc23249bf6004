#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/hardware/distance.hpp"
#include "src/hardware/fact.hpp"
#include "src/hardware/graph.hpp"
#include "src/hardware/nic_choice.hpp"
#include "src/hardware/pcie.hpp"
#include "src/hardware/peer_routes.hpp"

namespace gdr {

/// A model by kind and name: {"gpu", "k40"}.
using ModelName = std::pair<std::string, std::string>;

/// The model of a device or a socket: the one that the file names; else "generic" or, for a drive,
/// the generation of its link.
std::string model_name(const Host& host, const Device& device);
std::string model_name(const Socket& socket);
/// True when the file names a model ("generic" is no name).
bool names_model(const std::string& model);

/// NVIDIA's driver keeps this much of a GPU's BAR for itself (GPUDirect RDMA guide, "BAR space").
inline constexpr Bytes driver_bar_share{32ULL << 20U};

/// What a machine physically is: what its file states, else what models say. All code that needs
/// such a fact asks here, so that no two answers can disagree. It caches answers: use one object
/// per thread.
class Hardware {
 public:
  Hardware(const Graph& graph, const ModelLibrary& models) : graph_(&graph), models_(&models) {}

  [[nodiscard]] const Graph& graph() const { return *graph_; }
  [[nodiscard]] const ModelLibrary& models() const { return *models_; }
  [[nodiscard]] const Topology& topology() const { return graph_->topology(); }
  [[nodiscard]] const Host& host_of(DeviceId id) const { return topology().hosts.at(id.host); }
  [[nodiscard]] const Device& device(DeviceId id) const { return get(topology(), id); }

  // models.cpp: which model each component has.

  /// The CPU of a socket, memory or host bridge vertex.
  [[nodiscard]] const CpuModel& cpu(VertexId id) const;
  [[nodiscard]] const GpuModel& gpu(VertexId id) const;
  [[nodiscard]] const NicModel& nic(VertexId id) const;
  [[nodiscard]] const NvmeModel& nvme(VertexId id) const;
  [[nodiscard]] const SwitchModel& pci_switch(VertexId id) const;
  [[nodiscard]] const GpuModel& gpu(DeviceId id) const { return gpu(graph_->device(id)); }
  [[nodiscard]] const NicModel& nic(DeviceId id) const { return nic(graph_->device(id)); }
  [[nodiscard]] const NvmeModel& nvme(DeviceId id) const { return nvme(graph_->device(id)); }
  [[nodiscard]] const SwitchModel& pci_switch(DeviceId id) const {
    return pci_switch(graph_->device(id));
  }
  /// The settings of messaging libraries, drivers and the kernel.
  [[nodiscard]] const SoftwareModel& software(const std::string& name) const;
  /// Requires Topology::fabric.
  [[nodiscard]] const FabricModel& fabric() const;
  [[nodiscard]] const PcieModel& pcie(int generation) const;
  /// The model of an NVLink: the file's, else the generation of a GPU's model. nullptr: neither is
  /// stated; nvlink() then throws InputError.
  [[nodiscard]] const NvlinkModel* find_nvlink(const Hop& hop) const;
  [[nodiscard]] const NvlinkModel& nvlink(const Hop& hop) const;
  /// `stated`: the file names the model of the device; `assumed`: another stands in.
  [[nodiscard]] Basis model_basis(DeviceId id) const;
  /// The CPU of the socket that a device hangs below: `unknown` when the file does not say which.
  [[nodiscard]] Fact<const CpuModel*> cpu_above(DeviceId id) const;
  /// The models used so far, pcie and nvlink among them: the basis of all numbers taken from here.
  [[nodiscard]] std::set<ModelName> models_asked() const;

  /// True for an AMD GPU, by its model or its PCI id.
  [[nodiscard]] bool is_amd_gpu(DeviceId gpu) const;
  /// The library that GPUs of this kind run: "RCCL" (AMD's, which takes the same NCCL_ variables),
  /// else "NCCL".
  [[nodiscard]] std::string collective_library(DeviceId gpu) const;
  /// True for a switch that software shows (QEMU's bridges): by its model, or unnamed in a virtual
  /// machine at 2.5 GT/s.
  [[nodiscard]] bool is_virtual_switch(DeviceId id) const;

  // links.cpp: PCIe links and what they carry.

  /// The link above a device: the file's; else its capability by the file; else the fastest that
  /// the device's model and the port above (if a named switch or CPU gives it) both train. nullopt:
  /// no link that could limit, as at a virtual bridge. The file's link is not believed where
  /// software shows it (shows_virtual_link). Functions of one card share one link.
  [[nodiscard]] Fact<std::optional<PcieLink>> link(DeviceId id) const;
  /// The same for a PCIe edge.
  [[nodiscard]] Fact<std::optional<PcieLink>> link(std::size_t edge) const;
  /// True when the link that the file states is not real: that of a virtual bridge, or 2.5 GT/s of
  /// an endpoint in a virtual machine or of a GPU in the processor's package.
  [[nodiscard]] bool shows_virtual_link(DeviceId id) const;
  /// The fastest link of the model that the file names; nullopt for a device without one.
  [[nodiscard]] std::optional<PcieLink> named_model_link(DeviceId id) const;
  /// The fastest link between a device and the port above it: the file's capability, or what the
  /// models of both can do. Where the port is not known, the link's own generation stands in for
  /// it. nullopt: the file names no model, or NVLink joins the GPU to its CPU.
  [[nodiscard]] std::optional<PcieLink> trainable_link(DeviceId id) const;
  /// The fastest link of any CPU in the host; nullopt when one is not named.
  [[nodiscard]] std::optional<PcieLink> fastest_slot(std::size_t host) const;
  /// TLP bytes per second and direction of a PCIe edge; nullopt: not limiting.
  [[nodiscard]] std::optional<Bandwidth> link_bandwidth(const Hop& hop) const;
  /// Payload per second and direction of posted writes with TLPs of `max_payload`.
  [[nodiscard]] Bandwidth payload_rate(PcieLink link, Bytes max_payload) const;
  /// The generation's TLP layout on the engine's own link.
  [[nodiscard]] const PcieModel& layout(const Route& route) const;
  /// ACS control bits of the port above a device: the file's; none where the switch above has no
  /// ACS; else `unknown`, for which the simulator takes none.
  [[nodiscard]] Fact<Acs> port_acs(DeviceId id) const;
  /// False below a switch whose model has no ACS.
  [[nodiscard]] bool port_can_acs(DeviceId id) const;

  // hardware.cpp: sizes, windows and rates.

  /// Largest TLP payload that a device takes.
  [[nodiscard]] Fact<Bytes> max_payload(DeviceId id) const;
  /// The maximum payload that the system sets: the file's; else that of another device below the
  /// same root port, or the largest that all of them take.
  [[nodiscard]] Fact<Bytes> payload_setting(DeviceId id) const;
  /// Largest TLP payload that everything on the route takes.
  [[nodiscard]] Bytes max_payload(const Route& route) const;
  [[nodiscard]] Fact<Bytes> max_read_request(VertexId engine) const;
  /// Bytes that the engine keeps requested in transfers of `size`; smaller requests use the same
  /// tags and ask for less.
  [[nodiscard]] Bytes outstanding_reads(VertexId engine, Bytes size) const;
  /// Payload of the completions that come back from `target` over the data route.
  [[nodiscard]] Bytes completion_size(VertexId target, const Route& data) const;
  /// The BAR that maps a GPU's memory, and how much of the memory can be registered at a time: the
  /// BAR less what NVIDIA's driver keeps.
  [[nodiscard]] Fact<Bytes> bar_size(DeviceId gpu) const;
  [[nodiscard]] Bytes bar_window(DeviceId gpu) const;
  /// Rate of one network port, and of all ports of a NIC that are in use: one unless the file gives
  /// their number.
  [[nodiscard]] Fact<Bandwidth> port_rate(DeviceId nic) const;
  [[nodiscard]] Bandwidth network_rate(DeviceId nic) const;
  /// True when RDMA packets of the NIC run over Ethernet.
  [[nodiscard]] bool runs_ethernet(DeviceId nic) const;
  /// Reads plus writes that the DRAM of one NUMA node sustains.
  [[nodiscard]] Bandwidth memory_bandwidth(VertexId memory) const;
  /// Posted-write bound by the flow-control credits of the ports on the route; nullopt: none known.
  [[nodiscard]] std::optional<Bandwidth> credit_bound(const Route& route) const;
  /// Bound of posted writes in strict order at the first root complex on the route; nullopt: the
  /// engine is not a NIC with relaxed ordering off, or the order makes no difference there.
  [[nodiscard]] std::optional<Bandwidth> strict_order_bound(VertexId engine,
                                                            const Route& data) const;
  /// Payload per second and direction of all links between two sockets; nullopt: not stated.
  [[nodiscard]] std::optional<Bandwidth> socket_link_bandwidth(const Hop& hop) const;
  /// Payload per second and direction of the links between a GPU and its CPU.
  [[nodiscard]] Bandwidth c2c_bandwidth(const Hop& hop) const;
  /// Payload per second and direction between two GPUs over all NVLinks that join them.
  [[nodiscard]] Bandwidth nvlink_bandwidth(DeviceId from, DeviceId to) const;

  // latency.cpp

  /// Latency of the vertex before hop `i` of a local route (i == route.size(): the last vertex).
  [[nodiscard]] Duration crossing(const Route& route, std::size_t i) const;
  /// One-way latency of a local route: device cores, switches, root ports, forwarding between root
  /// ports, socket links.
  [[nodiscard]] Duration one_way(const Route& route) const;
  /// From the request's arrival at the target to its first data.
  [[nodiscard]] Duration read_latency(VertexId target) const;
  /// From a posted write's arrival at the target's port to its visibility.
  [[nodiscard]] Duration write_latency(VertexId target) const;
  /// From a read request at its engine to the first data back there.
  [[nodiscard]] Duration round_trip(const Route& requests, const Route& data) const;
  /// A region smaller than this stays in the last-level cache where DMA allocates in it.
  [[nodiscard]] Bytes dma_cache() const;
  /// Bytes that a NIC buffers between memory and its port.
  [[nodiscard]] Bytes nic_buffer(VertexId nic) const;
  /// Latency of the network, NIC port to NIC port, without the NICs.
  [[nodiscard]] Duration wire_latency() const;
  /// One-way latency of the NVLinks of a route.
  [[nodiscard]] Duration nvlink_latency(const Route& route) const;
  /// What IOTLB misses add to transfers of `size` between a device and a host's memory that are
  /// spread over `window`. All zero without a translating IOMMU.
  struct Translation {
    double miss_share = 0;
    Duration latency;                ///< on average
    std::optional<Bandwidth> bound;  ///< by page walks that run at once
  };
  [[nodiscard]] Translation translation(const Route& data, Bytes size, Bytes window) const;
  /// True when a route goes from one root port to another (or back down the same one).
  [[nodiscard]] bool through_root_complex(const Route& route) const;

  // peer_routes.cpp, nic_choice.cpp: where things are.

  /// Routes of requests from `initiator` to `target`, two vertices of one host, and of completions.
  /// They meet at the lowest common bridge. When that is a switch, its ports' ACS bits or an IOMMU
  /// that translates may send them up to the host bridge and back.
  [[nodiscard]] PeerRoutes peer_routes(VertexId initiator, VertexId target) const;
  /// The NUMA node (index in its host) above a device; `unknown` when the node or a bridge between
  /// is not known.
  [[nodiscard]] Fact<std::size_t> numa(DeviceId id) const;
  /// The NICs of the device's host that count for `use`, ranked by distance.
  [[nodiscard]] std::vector<RankedNic> nics_by_distance(DeviceId device, NicUse use) const;
  /// The nearest of them; devices of one kind with the same set of nearest NICs are assigned
  /// round-robin. nullopt: there is none.
  [[nodiscard]] std::optional<DeviceId> nearest_nic(DeviceId device, NicUse use) const;

 private:
  template <typename Model>
  const Model& asked(std::string_view kind, const Model& model) const;
  [[nodiscard]] std::optional<PcieLink> model_link(DeviceId id) const;
  [[nodiscard]] std::optional<PcieLink> port_link(DeviceId id) const;
  [[nodiscard]] Fact<std::optional<PcieLink>> find_link(DeviceId id) const;
  [[nodiscard]] std::optional<DeviceId> switch_above(DeviceId id) const;
  [[nodiscard]] DeviceId top_of(DeviceId id) const;

  /// The model of a vertex, which `find` finds the first time.
  template <typename Model>
  using ByVertex = std::unordered_map<VertexId, const Model*>;
  template <typename Model, typename Find>
  const Model& once(ByVertex<Model>& known, VertexId id, std::string_view kind, Find find) const;

  const Graph* graph_;
  const ModelLibrary* models_;
  mutable std::map<const ModelHeader*, std::string_view> asked_;
  mutable ByVertex<CpuModel> cpus_;
  mutable ByVertex<GpuModel> gpus_;
  mutable ByVertex<NicModel> nics_;
  mutable ByVertex<NvmeModel> drives_;
  mutable ByVertex<SwitchModel> switches_;
  mutable std::map<int, const PcieModel*> generations_;
  mutable std::map<DeviceId, Fact<std::optional<PcieLink>>> links_;
};

}  // namespace gdr
