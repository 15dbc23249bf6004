#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/catalog/parameter.hpp"
#include "src/common/units.hpp"

namespace gdr {

// The fields are documented, with types and meaning, in docs/models.md; a test holds the two
// together.

struct PcieModel {
  ModelHeader header;
  Parameter<std::int64_t> transfer_rate_mtps;
  Parameter<std::int64_t> code_payload;
  Parameter<std::int64_t> code_line;
  Parameter<std::int64_t> dllp_share_permille;
  Parameter<Bytes> tlp_framing;
  Parameter<Bytes> write_header;
  Parameter<Bytes> read_header;
  Parameter<Bytes> completion_header;
  bool operator==(const PcieModel&) const = default;
};

struct CpuModel {
  ModelHeader header;
  int pcie_generation = 0;
  int pcie_lanes = 0;
  std::string arch;
  std::vector<CpuIdentity> cpuid;
  std::vector<std::string> host_bridge_ids;
  Parameter<Bytes> max_payload;
  Parameter<Bytes> completion_size;
  std::optional<Parameter<Bytes>> read_completion_split;
  Parameter<Duration> root_port_latency;
  Parameter<Duration> memory_latency;
  Parameter<std::int64_t> memory_channels;
  Parameter<std::string> memory_transfer_rate;
  Parameter<std::int64_t> memory_efficiency_percent;
  Parameter<bool> cache_absorbs_dma;
  Parameter<Bandwidth> root_complex_bandwidth;
  Parameter<std::string> p2p_forwarding;
  std::optional<Parameter<Bandwidth>> p2p_read_bandwidth;
  std::optional<Parameter<Bandwidth>> p2p_write_bandwidth;
  std::optional<Parameter<Bandwidth>> p2p_remote_read_bandwidth;
  std::optional<Parameter<Bandwidth>> p2p_remote_write_bandwidth;
  std::optional<Parameter<Bytes>> p2p_remote_write_window;
  std::optional<Parameter<Bandwidth>> p2p_fan_out_write_bandwidth;
  Parameter<Duration> p2p_latency;
  Parameter<std::int64_t> socket_links;
  std::optional<Parameter<Bandwidth>> socket_link_bandwidth;
  std::optional<Parameter<Duration>> socket_link_latency;
  std::optional<Parameter<std::string>> socket_link_name;
  Parameter<std::int64_t> cores;
  Parameter<Bandwidth> copy_bandwidth_per_core;
  Parameter<Duration> mmio_write_latency;
  Parameter<Duration> completion_poll_latency;
  Parameter<Duration> post_cost;
  Parameter<Duration> two_sided_cost;
  Parameter<Duration> system_call_cost;
  Parameter<Duration> packet_cost;
  Parameter<Duration> interrupt_latency;
  std::optional<Parameter<std::int64_t>> iotlb_entries;
  std::optional<Parameter<Duration>> iotlb_miss_latency;
  std::optional<Parameter<std::int64_t>> iotlb_walks;
  std::optional<Parameter<Duration>> cache_miss_latency;
  Parameter<bool> relaxed_ordering_needed;
  std::optional<Parameter<Bandwidth>> strict_order_write_bandwidth;
  bool operator==(const CpuModel&) const = default;
};

struct SwitchModel {
  ModelHeader header;
  Parameter<Bytes> max_payload;
  Parameter<Duration> latency;
  Parameter<Bytes> posted_credit;
  std::optional<Parameter<std::int64_t>> port_bandwidth_percent;
  std::optional<Parameter<Bandwidth>> crossbar_bandwidth;
  Parameter<bool> acs;
  Parameter<bool> is_virtual;
  bool operator==(const SwitchModel&) const = default;
};

struct GpuModel {
  ModelHeader header;
  Parameter<Bytes> memory_size;
  Parameter<Bandwidth> memory_bandwidth;
  Parameter<Bytes> bar_size;
  Parameter<bool> gpudirect_rdma;
  std::optional<Parameter<std::int64_t>> compute_capability;
  std::optional<Parameter<std::string>> amd_gfx;
  Parameter<Bytes> max_payload;
  Parameter<Bytes> max_read_request;
  Parameter<Bytes> outstanding_reads;
  Parameter<Bytes> completion_size;
  Parameter<Duration> pcie_latency;
  Parameter<Duration> bar_read_latency;
  Parameter<Duration> bar_write_latency;
  Parameter<Bandwidth> bar_read_bandwidth;
  Parameter<Bandwidth> bar_write_bandwidth;
  Parameter<Bytes> posted_credit;
  Parameter<std::int64_t> copy_engines;
  Parameter<Duration> copy_call_cost;
  Parameter<Duration> copy_launch_latency;
  Parameter<Duration> copy_completion_latency;
  Parameter<Bandwidth> copy_bandwidth;
  std::optional<Parameter<std::int64_t>> nvlink_generation;
  std::optional<Parameter<std::int64_t>> nvlink_links;
  std::optional<Parameter<Duration>> store_latency;
  std::optional<Parameter<Duration>> post_cost;
  bool operator==(const GpuModel&) const = default;
};

struct NicModel {
  ModelHeader header;
  Parameter<std::int64_t> ports;
  Parameter<Bandwidth> port_rate;
  Parameter<std::string> link_layers;
  Parameter<std::string> rdma;
  Parameter<Bytes> max_payload;
  Parameter<Bytes> max_read_request;
  Parameter<Bytes> outstanding_reads;
  std::optional<Parameter<Bytes>> completion_size;
  Parameter<Duration> pcie_latency;
  Parameter<Bytes> posted_credit;
  std::optional<Parameter<Bandwidth>> dma_bandwidth;
  Parameter<Duration> send_latency;
  Parameter<Duration> receive_latency;
  Parameter<Duration> message_cost;
  Parameter<Duration> queue_pair_message_cost;
  Parameter<bool> wqe_fetch;
  Parameter<bool> blueflame;
  Parameter<Bytes> inline_threshold;
  Parameter<std::int64_t> max_read_atomic;
  Parameter<Duration> acknowledge_latency;
  Parameter<Bytes> queue_pair_window;
  std::optional<Parameter<Bandwidth>> queue_pair_bandwidth;
  Parameter<bool> relaxed_ordering;
  std::optional<Parameter<std::int64_t>> reads_in_flight;
  std::optional<Parameter<Bandwidth>> dma_copy_bandwidth;
  bool operator==(const NicModel&) const = default;
};

struct NvmeModel {
  ModelHeader header;
  Parameter<Bandwidth> read_bandwidth;
  Parameter<Bandwidth> write_bandwidth;
  Parameter<Duration> read_latency;
  Parameter<Duration> write_latency;
  Parameter<std::int64_t> read_iops;
  Parameter<std::int64_t> write_iops;
  Parameter<Bytes> max_payload;
  Parameter<Bytes> max_read_request;
  Parameter<Bytes> outstanding_reads;
  Parameter<Duration> pcie_latency;
  Parameter<Bytes> capacity;
  bool operator==(const NvmeModel&) const = default;
};

struct NvlinkModel {
  ModelHeader header;
  Parameter<std::int64_t> generation;
  Parameter<Bandwidth> link_bandwidth;
  Parameter<std::int64_t> protocol_efficiency_percent;
  Parameter<Duration> latency;
  std::optional<Parameter<Duration>> switch_latency;
  std::optional<Parameter<Bandwidth>> nccl_bandwidth;
  bool operator==(const NvlinkModel&) const = default;
};

struct FabricModel {
  ModelHeader header;
  Parameter<std::string> link_layer;
  Parameter<Bytes> mtu;
  Parameter<Bytes> packet_header;
  Parameter<Bytes> acknowledge_size;
  Parameter<Bytes> tcp_mtu;
  Parameter<Bytes> tcp_header;
  Parameter<Duration> cable_latency;
  Parameter<Duration> switch_latency;
  bool operator==(const FabricModel&) const = default;
};

}  // namespace gdr
