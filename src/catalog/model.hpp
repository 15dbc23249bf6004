#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "src/catalog/parameter.hpp"
#include "src/common/units.hpp"

namespace gdr {

template <typename Model>
using Shared = std::shared_ptr<const Model>;

struct PcieModel {
  GDR_MODEL("pcie");
  GDR_PARAMETER(std::int64_t, transfer_rate_mtps, "megatransfers per second and lane", above_zero);
  GDR_PARAMETER(std::int64_t, code_payload, "the line code carries this many bits...", above_zero);
  GDR_PARAMETER(std::int64_t, code_line, "...in this many", above_zero);
  GDR_PARAMETER(std::int64_t, dllp_share_permille,
                "share of the link that acknowledgements and flow-control updates take");
  GDR_PARAMETER(Bytes, tlp_framing, "framing, sequence number and LCRC of every TLP", anything);
  GDR_PARAMETER(Bytes, write_header, "header of a posted write");
  GDR_PARAMETER(Bytes, read_header, "header of a read request");
  GDR_PARAMETER(Bytes, completion_header, "header of a read completion");
  bool operator==(const PcieModel&) const = default;
};

struct CpuModel {
  GDR_MODEL("cpu");
  int pcie_generation = 0;
  int pcie_lanes = 0;
  std::string arch;
  std::vector<CpuIdentity> cpuid;
  std::vector<std::string> host_bridge_ids;
  GDR_PARAMETER(Bytes, max_payload, "largest TLP payload that the root ports accept (MPS)",
                payload_limit);
  GDR_PARAMETER(Bytes, completion_size,
                "payload of the read completions that the root complex sends for memory reads (a "
                "multiple of the read completion boundary)");
  GDR_OPTIONAL_PARAMETER(Bytes, read_completion_split,
                         "largest completion that the root complex forwards in peer-to-peer reads; "
                         "absent: not split");
  GDR_PARAMETER(Duration, root_port_latency,
                "one way, from the wire of a root port to the socket's fabric (or back)");
  GDR_PARAMETER(Duration, memory_latency,
                "socket fabric to memory and back: the time a DMA read waits for its first byte");
  GDR_PARAMETER(std::int64_t, memory_channels, "DRAM channels per socket, as servers populate them",
                above_zero);
  GDR_PARAMETER(std::string, memory_transfer_rate,
                "DRAM speed grade, e.g. DDR4-3200 (a channel is 8 bytes wide) or LPDDR5X-8533 (2 "
                "bytes wide); POWER9 and the like use the nearest grade",
                speed_grade);
  GDR_PARAMETER(std::int64_t, memory_efficiency_percent,
                "share of the DRAM peak that mixed reads and writes reach", percent);
  GDR_PARAMETER(bool, cache_absorbs_dma,
                "true: inbound DMA allocates in the last-level cache (DDIO and the like), so DRAM "
                "traffic is below logical passes");
  GDR_PARAMETER(Bandwidth, root_complex_bandwidth,
                "per direction, what all root ports of one host bridge can exchange with the "
                "socket's fabric");
  GDR_PARAMETER(
      std::string, p2p_forwarding,
      "which memory TLPs the root complex forwards from root port to root port: all (of the "
      "machine), host-bridge (within one host bridge)",
      one_of<"all", "host-bridge">);
  GDR_OPTIONAL_PARAMETER(
      Bandwidth, p2p_read_bandwidth,
      "reads between root ports of one socket, all flows of a destination port together");
  GDR_OPTIONAL_PARAMETER(Bandwidth, p2p_write_bandwidth,
                         "posted writes between root ports of one socket, per destination port");
  GDR_OPTIONAL_PARAMETER(Bandwidth, p2p_remote_read_bandwidth, "the same across the socket link");
  GDR_OPTIONAL_PARAMETER(Bandwidth, p2p_remote_write_bandwidth, "the same across the socket link");
  GDR_OPTIONAL_PARAMETER(Bytes, p2p_remote_write_window,
                         "posted writes under way across the socket link, acknowledged end to end");
  GDR_OPTIONAL_PARAMETER(Bandwidth, p2p_fan_out_write_bandwidth,
                         "posted writes of two or more devices below one root port to two or more "
                         "other root ports, together");
  GDR_PARAMETER(Duration, p2p_latency,
                "added one way when a TLP is forwarded from root port to root port (beside the two "
                "root_port_latency)");
  GDR_PARAMETER(std::int64_t, socket_links,
                "socket-to-socket links of a two-socket machine (0: one-socket part)");
  GDR_OPTIONAL_PARAMETER(Bandwidth, socket_link_bandwidth,
                         "payload per link and direction (QPI, UPI, xGMI, NVLink...)");
  GDR_OPTIONAL_PARAMETER(Duration, socket_link_latency, "one way");
  GDR_OPTIONAL_PARAMETER(std::string, socket_link_name, "QPI, UPI, xGMI, X-bus, C2C");
  GDR_PARAMETER(std::int64_t, cores, "cores per socket of the typical part", above_zero);
  GDR_PARAMETER(Bandwidth, copy_bandwidth_per_core,
                "memcpy by one core, memory to memory, payload");
  GDR_PARAMETER(
      Duration, mmio_write_latency,
      "from the store instruction to the TLP leaving the root port (write-combined doorbell)");
  GDR_PARAMETER(Duration, completion_poll_latency,
                "from the CQE in memory until the polling thread has it");
  GDR_PARAMETER(Duration, post_cost, "core time to post one work request and take its completion");
  GDR_PARAMETER(Duration, two_sided_cost,
                "time of a messaging library (MPI, UCX) for one two-sided message on one side: "
                "protocol and matching; the operation `send` is such a message");
  GDR_PARAMETER(Duration, system_call_cost, "entry, exit and socket layer of one send or receive");
  GDR_PARAMETER(
      Duration, packet_cost,
      "kernel network stack per segment handed to or by the NIC (with TSO/GRO: per 64 KiB)");
  GDR_PARAMETER(Duration, interrupt_latency, "from packet in memory to the woken thread");
  GDR_OPTIONAL_PARAMETER(std::int64_t, iotlb_entries, "IOTLB reach in entries");
  GDR_OPTIONAL_PARAMETER(Duration, iotlb_miss_latency, "added to a DMA whose translation misses");
  GDR_OPTIONAL_PARAMETER(std::int64_t, iotlb_walks, "page walks that run at once");
  GDR_OPTIONAL_PARAMETER(Duration, cache_miss_latency,
                         "added to a DMA read that misses the last-level cache");
  GDR_PARAMETER(bool, relaxed_ordering_needed,
                "true: strictly ordered inbound writes are much slower on this family (so relaxed "
                "ordering matters)");
  GDR_OPTIONAL_PARAMETER(Bandwidth, strict_order_write_bandwidth,
                         "inbound writes without relaxed ordering, where relaxed_ordering_needed");
  bool operator==(const CpuModel&) const = default;
};

struct SwitchModel {
  GDR_MODEL("switch");
  static constexpr bool trains_link = true;
  GDR_PARAMETER(Bytes, max_payload, "largest TLP payload (MPS)", payload_limit);
  GDR_PARAMETER(Duration, latency, "cut-through, port to port, one way, including both ports");
  GDR_PARAMETER(
      Bytes, posted_credit,
      "payload that may be on its way into one port before its flow-control credits return");
  GDR_OPTIONAL_PARAMETER(std::int64_t, port_bandwidth_percent,
                         "share of a port's line rate that the crossbar sustains (absent: 100)",
                         percent);
  GDR_OPTIONAL_PARAMETER(
      Bandwidth, crossbar_bandwidth,
      "all flows through the chip together, per direction; absent: not limiting");
  GDR_PARAMETER(bool, acs, "the downstream ports have the ACS capability");
  GDR_RENAMED_PARAMETER(bool, is_virtual, "virtual",
                        "true: a software bridge (QEMU); its link attributes are not believed");
  bool operator==(const SwitchModel&) const = default;
};

struct GpuModel {
  GDR_MODEL("gpu");
  static constexpr bool trains_link = true;
  GDR_PARAMETER(Bytes, memory_size, "device memory");
  GDR_PARAMETER(Bandwidth, memory_bandwidth, "peak of the device memory");
  GDR_PARAMETER(Bytes, bar_size, "the BAR that maps device memory (BAR1 of NVIDIA) as shipped");
  GDR_PARAMETER(bool, gpudirect_rdma,
                "the driver registers this class of GPU for peers (GeForce: false)");
  GDR_OPTIONAL_PARAMETER(std::int64_t, compute_capability, "NVIDIA: 80 for 8.0; AMD: absent");
  GDR_OPTIONAL_PARAMETER(std::string, amd_gfx, "AMD: gfx90a and so on");
  GDR_PARAMETER(Bytes, max_payload, "MPS", payload_limit);
  GDR_PARAMETER(Bytes, max_read_request, "MRRS as drivers set it", payload_limit);
  GDR_PARAMETER(Bytes, outstanding_reads, "bytes of reads the GPU's own engines keep in flight");
  GDR_PARAMETER(Bytes, completion_size, "payload of the completions it sends when it is read");
  GDR_PARAMETER(Duration, pcie_latency, "one way, its PCIe core: wire to internal fabric");
  GDR_PARAMETER(Duration, bar_read_latency,
                "internal: request in, first byte of data out, for a peer's read");
  GDR_PARAMETER(Duration, bar_write_latency,
                "internal: posted write in until visible in device memory");
  GDR_PARAMETER(Bandwidth, bar_read_bandwidth, "what peers can read, all together");
  GDR_PARAMETER(Bandwidth, bar_write_bandwidth, "what peers can write, all together");
  GDR_PARAMETER(Bytes, posted_credit, "as for the switch: into the GPU");
  GDR_PARAMETER(std::int64_t, copy_engines, "engines usable for host copies at once", above_zero);
  GDR_PARAMETER(
      Duration, copy_call_cost,
      "CPU time of one asynchronous copy call: the least time between two copies of one thread");
  GDR_PARAMETER(
      Duration, copy_launch_latency,
      "from the API call on the CPU until the engine moves the first byte (asynchronous copy)");
  GDR_PARAMETER(
      Duration, copy_completion_latency,
      "from the last byte until the waiting CPU thread knows (event or stream synchronise)");
  GDR_PARAMETER(Bandwidth, copy_bandwidth,
                "one engine, device memory to or from PCIe, before PCIe's own overhead limits it");
  GDR_OPTIONAL_PARAMETER(std::int64_t, nvlink_generation, "absent: none");
  GDR_OPTIONAL_PARAMETER(Duration, store_latency,
                         "from a store by a GPU thread to the TLP on the wire");
  GDR_OPTIONAL_PARAMETER(
      Duration, post_cost,
      "time of a GPU thread to write one work request (locks, ordering) where GPUs post");
  bool operator==(const GpuModel&) const = default;
};

struct NicModel {
  GDR_MODEL("nic");
  static constexpr bool trains_link = true;
  GDR_PARAMETER(std::int64_t, ports, "network ports", above_zero);
  GDR_PARAMETER(Bandwidth, port_rate, "per port: 200Gb/s");
  GDR_PARAMETER(std::string, link_layers, "infiniband, ethernet, or both: infiniband,ethernet",
                one_of<"infiniband", "ethernet", "infiniband,ethernet">);
  GDR_PARAMETER(std::string, rdma, "verbs, srd (EFA) or none", one_of<"verbs", "srd", "none">);
  GDR_PARAMETER(Bytes, max_payload, "MPS", payload_limit);
  GDR_PARAMETER(Bytes, max_read_request, "MRRS as drivers set it", payload_limit);
  GDR_PARAMETER(
      Bytes, outstanding_reads,
      "bytes of PCIe reads the DMA engine keeps in flight (tags x request size, or its own limit)");
  GDR_PARAMETER(Duration, pcie_latency, "one way, its PCIe core");
  GDR_OPTIONAL_PARAMETER(Bandwidth, dma_bandwidth,
                         "all DMA of the device per direction (absent: not limiting)");
  GDR_PARAMETER(Duration, send_latency,
                "doorbell seen until the first read request or, inline, the first packet leaves: "
                "processing only");
  GDR_PARAMETER(Duration, receive_latency, "packet in until its write TLP leaves: processing only");
  GDR_PARAMETER(Duration, message_cost,
                "occupancy of the processing pipeline per message, all queue pairs together (1 / "
                "message rate)");
  GDR_PARAMETER(Duration, queue_pair_message_cost, "occupancy per message of one queue pair");
  GDR_PARAMETER(
      bool, wqe_fetch,
      "true: without BlueFlame the NIC reads the WQE from host memory after the doorbell");
  GDR_PARAMETER(bool, blueflame, "the WQE can be written with the doorbell");
  GDR_PARAMETER(Bytes, inline_threshold, "largest inline payload", anything);
  GDR_PARAMETER(std::int64_t, max_read_atomic, "outstanding RDMA reads per queue pair");
  GDR_PARAMETER(Duration, acknowledge_latency,
                "last packet received until the acknowledgement leaves, and acknowledgement "
                "received until the CQE write leaves: each");
  GDR_PARAMETER(Bytes, queue_pair_window, "unacknowledged bytes of one queue pair");
  GDR_OPTIONAL_PARAMETER(Bandwidth, queue_pair_bandwidth,
                         "one queue pair alone (absent: the port)");
  GDR_OPTIONAL_PARAMETER(
      std::int64_t, reads_in_flight,
      "read requests that may be unanswered (tags), where this limits small reads");
  GDR_OPTIONAL_PARAMETER(Bandwidth, dma_copy_bandwidth,
                         "a DMA is done when its bytes were also copied inside the device, at this "
                         "rate (pipelined: it costs latency only)");
  bool operator==(const NicModel&) const = default;
};

struct NvmeModel {
  GDR_MODEL("nvme");
  static constexpr bool trains_link = true;
  GDR_PARAMETER(Bandwidth, read_bandwidth, "sequential");
  GDR_PARAMETER(Bandwidth, write_bandwidth, "sequential");
  GDR_PARAMETER(Duration, read_latency, "4 KiB, queue depth 1, from doorbell to data");
  GDR_PARAMETER(Duration, write_latency, "the same");
  GDR_PARAMETER(std::int64_t, read_iops, "4 KiB random, per second", above_zero);
  GDR_PARAMETER(std::int64_t, write_iops, "the same", above_zero);
  GDR_PARAMETER(Bytes, max_payload, "MPS", payload_limit);
  GDR_PARAMETER(Bytes, max_read_request, "MRRS as drivers set it", payload_limit);
  GDR_PARAMETER(Bytes, outstanding_reads, "as for the NIC");
  GDR_PARAMETER(Duration, pcie_latency, "one way");
  bool operator==(const NvmeModel&) const = default;
};

struct NvlinkModel {
  GDR_MODEL("nvlink");
  GDR_PARAMETER(Bandwidth, link_bandwidth, "raw, per link and direction");
  GDR_PARAMETER(std::int64_t, protocol_efficiency_percent, "payload share for large transfers",
                percent);
  GDR_PARAMETER(Duration, latency, "one way, GPU to GPU without a switch");
  GDR_OPTIONAL_PARAMETER(Duration, switch_latency, "added by an NVSwitch");
  bool operator==(const NvlinkModel&) const = default;
};

struct FabricModel {
  GDR_MODEL("fabric");
  GDR_PARAMETER(std::string, link_layer, "infiniband or ethernet",
                one_of<"infiniband", "ethernet">);
  GDR_PARAMETER(Bytes, mtu, "RDMA path MTU");
  GDR_RENAMED_PARAMETER(
      Bytes, packet_header, "header",
      "bytes on the wire around the payload of one full RDMA packet, framing and gap included");
  GDR_PARAMETER(Bytes, tcp_mtu, "Ethernet/IPoIB MTU for the TCP path");
  GDR_PARAMETER(Bytes, tcp_header, "Ethernet + IP + TCP + framing per packet");
  GDR_PARAMETER(Duration, cable_latency, "one cable with its transceivers or DAC, per hop");
  GDR_PARAMETER(Duration, switch_latency, "one switch, cut-through");
  bool operator==(const FabricModel&) const = default;
};

/// Software that moves data, and what no device model states. Each file has the parameters of its
/// subject; stated() reads one that its user needs.
struct SoftwareModel {
  GDR_MODEL("software");
  GDR_OPTIONAL_PARAMETER(Bytes, buffer_size, "one staging buffer in host memory");
  GDR_OPTIONAL_PARAMETER(std::int64_t, buffers, "staging buffers of one transfer", above_zero);
  GDR_OPTIONAL_PARAMETER(Bytes, tcp_segment,
                         "most that a socket hands to a NIC or takes from it at once (GSO, GRO)");
  GDR_OPTIONAL_PARAMETER(Bytes, tcp_window, "bytes of one socket under way");
  GDR_OPTIONAL_PARAMETER(Bytes, iommu_page,
                         "page of a DMA mapping where the topology does not say");
  GDR_OPTIONAL_PARAMETER(Bytes, dma_cache,
                         "part of the last-level cache that DMA allocates in: what is smaller "
                         "stays there");
  GDR_OPTIONAL_PARAMETER(std::int64_t, write_latency_percent,
                         "of `memory_latency`: until a posted write is visible", percent);
  GDR_OPTIONAL_PARAMETER(std::int64_t, nic_buffer_windows,
                         "what a NIC holds between memory and port, in units of its "
                         "`outstanding_reads`",
                         above_zero);
  bool operator==(const SoftwareModel&) const = default;
};

/// Throws InputError: models/software/MODEL.json lacks the parameter.
[[noreturn]] void missing_parameter(const std::string& model, const char* parameter);

/// The value of an optional parameter; `name` is for the error. Throws InputError when it is
/// absent.
template <typename T>
const T& stated(const SoftwareModel& model, std::optional<Parameter<T>> SoftwareModel::*member,
                const char* name) {
  const auto& parameter = model.*member;
  if (!parameter) missing_parameter(model.header.name, name);
  return parameter->value;
}

/// Every kind of model that the library holds: a new one is a struct above and a line here.
using AnyModel = std::variant<Shared<PcieModel>, Shared<CpuModel>, Shared<SwitchModel>,
                              Shared<GpuModel>, Shared<NicModel>, Shared<NvmeModel>,
                              Shared<NvlinkModel>, Shared<FabricModel>, Shared<SoftwareModel>>;

/// Calls `use.template operator()<Model>()` for each kind of model.
template <typename Use>
void for_each_kind(Use use) {
  const auto each = [&]<typename... Models>(const std::variant<Shared<Models>...>* /*list*/) {
    (use.template operator()<Models>(), ...);
  };
  each(static_cast<const AnyModel*>(nullptr));
}

}  // namespace gdr
