#pragma once

#include <concepts>
#include <type_traits>

#include "src/catalog/model.hpp"

namespace gdr {

// The parameters of each kind of model, by name. A visitor has required(name, parameter) and
// optional(name, parameter); the loader, the documentation test and the listing of estimates all
// walk these.

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, PcieModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("transfer_rate_mtps", model.transfer_rate_mtps);
  visit.required("code_payload", model.code_payload);
  visit.required("code_line", model.code_line);
  visit.required("dllp_share_permille", model.dllp_share_permille);
  visit.required("tlp_framing", model.tlp_framing);
  visit.required("write_header", model.write_header);
  visit.required("read_header", model.read_header);
  visit.required("completion_header", model.completion_header);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, CpuModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("max_payload", model.max_payload);
  visit.required("completion_size", model.completion_size);
  visit.optional("read_completion_split", model.read_completion_split);
  visit.required("root_port_latency", model.root_port_latency);
  visit.required("memory_latency", model.memory_latency);
  visit.required("memory_channels", model.memory_channels);
  visit.required("memory_transfer_rate", model.memory_transfer_rate);
  visit.required("memory_efficiency_percent", model.memory_efficiency_percent);
  visit.required("cache_absorbs_dma", model.cache_absorbs_dma);
  visit.required("root_complex_bandwidth", model.root_complex_bandwidth);
  visit.required("p2p_forwarding", model.p2p_forwarding);
  visit.optional("p2p_read_bandwidth", model.p2p_read_bandwidth);
  visit.optional("p2p_write_bandwidth", model.p2p_write_bandwidth);
  visit.optional("p2p_remote_read_bandwidth", model.p2p_remote_read_bandwidth);
  visit.optional("p2p_remote_write_bandwidth", model.p2p_remote_write_bandwidth);
  visit.optional("p2p_remote_write_window", model.p2p_remote_write_window);
  visit.optional("p2p_fan_out_write_bandwidth", model.p2p_fan_out_write_bandwidth);
  visit.required("p2p_latency", model.p2p_latency);
  visit.required("socket_links", model.socket_links);
  visit.optional("socket_link_bandwidth", model.socket_link_bandwidth);
  visit.optional("socket_link_latency", model.socket_link_latency);
  visit.optional("socket_link_name", model.socket_link_name);
  visit.required("cores", model.cores);
  visit.required("copy_bandwidth_per_core", model.copy_bandwidth_per_core);
  visit.required("mmio_write_latency", model.mmio_write_latency);
  visit.required("completion_poll_latency", model.completion_poll_latency);
  visit.required("post_cost", model.post_cost);
  visit.required("two_sided_cost", model.two_sided_cost);
  visit.required("system_call_cost", model.system_call_cost);
  visit.required("packet_cost", model.packet_cost);
  visit.required("interrupt_latency", model.interrupt_latency);
  visit.optional("iotlb_entries", model.iotlb_entries);
  visit.optional("iotlb_miss_latency", model.iotlb_miss_latency);
  visit.optional("iotlb_walks", model.iotlb_walks);
  visit.optional("cache_miss_latency", model.cache_miss_latency);
  visit.required("relaxed_ordering_needed", model.relaxed_ordering_needed);
  visit.optional("strict_order_write_bandwidth", model.strict_order_write_bandwidth);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, SwitchModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("max_payload", model.max_payload);
  visit.required("latency", model.latency);
  visit.required("posted_credit", model.posted_credit);
  visit.optional("port_bandwidth_percent", model.port_bandwidth_percent);
  visit.optional("crossbar_bandwidth", model.crossbar_bandwidth);
  visit.required("acs", model.acs);
  visit.required("virtual", model.is_virtual);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, GpuModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("memory_size", model.memory_size);
  visit.required("memory_bandwidth", model.memory_bandwidth);
  visit.required("bar_size", model.bar_size);
  visit.required("gpudirect_rdma", model.gpudirect_rdma);
  visit.optional("compute_capability", model.compute_capability);
  visit.optional("amd_gfx", model.amd_gfx);
  visit.required("max_payload", model.max_payload);
  visit.required("max_read_request", model.max_read_request);
  visit.required("outstanding_reads", model.outstanding_reads);
  visit.required("completion_size", model.completion_size);
  visit.required("pcie_latency", model.pcie_latency);
  visit.required("bar_read_latency", model.bar_read_latency);
  visit.required("bar_write_latency", model.bar_write_latency);
  visit.required("bar_read_bandwidth", model.bar_read_bandwidth);
  visit.required("bar_write_bandwidth", model.bar_write_bandwidth);
  visit.required("posted_credit", model.posted_credit);
  visit.required("copy_engines", model.copy_engines);
  visit.required("copy_call_cost", model.copy_call_cost);
  visit.required("copy_launch_latency", model.copy_launch_latency);
  visit.required("copy_completion_latency", model.copy_completion_latency);
  visit.required("copy_bandwidth", model.copy_bandwidth);
  visit.optional("nvlink_generation", model.nvlink_generation);
  visit.optional("nvlink_links", model.nvlink_links);
  visit.optional("store_latency", model.store_latency);
  visit.optional("post_cost", model.post_cost);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, NicModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("ports", model.ports);
  visit.required("port_rate", model.port_rate);
  visit.required("link_layers", model.link_layers);
  visit.required("rdma", model.rdma);
  visit.required("max_payload", model.max_payload);
  visit.required("max_read_request", model.max_read_request);
  visit.required("outstanding_reads", model.outstanding_reads);
  visit.optional("completion_size", model.completion_size);
  visit.required("pcie_latency", model.pcie_latency);
  visit.required("posted_credit", model.posted_credit);
  visit.optional("dma_bandwidth", model.dma_bandwidth);
  visit.required("send_latency", model.send_latency);
  visit.required("receive_latency", model.receive_latency);
  visit.required("message_cost", model.message_cost);
  visit.required("queue_pair_message_cost", model.queue_pair_message_cost);
  visit.required("wqe_fetch", model.wqe_fetch);
  visit.required("blueflame", model.blueflame);
  visit.required("inline_threshold", model.inline_threshold);
  visit.required("max_read_atomic", model.max_read_atomic);
  visit.required("acknowledge_latency", model.acknowledge_latency);
  visit.required("queue_pair_window", model.queue_pair_window);
  visit.optional("queue_pair_bandwidth", model.queue_pair_bandwidth);
  visit.required("relaxed_ordering", model.relaxed_ordering);
  visit.optional("reads_in_flight", model.reads_in_flight);
  visit.optional("dma_copy_bandwidth", model.dma_copy_bandwidth);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, NvmeModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("read_bandwidth", model.read_bandwidth);
  visit.required("write_bandwidth", model.write_bandwidth);
  visit.required("read_latency", model.read_latency);
  visit.required("write_latency", model.write_latency);
  visit.required("read_iops", model.read_iops);
  visit.required("write_iops", model.write_iops);
  visit.required("max_payload", model.max_payload);
  visit.required("max_read_request", model.max_read_request);
  visit.required("outstanding_reads", model.outstanding_reads);
  visit.required("pcie_latency", model.pcie_latency);
  visit.required("capacity", model.capacity);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, NvlinkModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("generation", model.generation);
  visit.required("link_bandwidth", model.link_bandwidth);
  visit.required("protocol_efficiency_percent", model.protocol_efficiency_percent);
  visit.required("latency", model.latency);
  visit.optional("switch_latency", model.switch_latency);
  visit.optional("nccl_bandwidth", model.nccl_bandwidth);
}

template <typename Visitor, typename Model>
requires std::same_as<std::remove_const_t<Model>, FabricModel>
void visit_parameters(Model& model, Visitor&& visit) {
  visit.required("link_layer", model.link_layer);
  visit.required("mtu", model.mtu);
  visit.required("header", model.packet_header);
  visit.required("acknowledge_size", model.acknowledge_size);
  visit.required("tcp_mtu", model.tcp_mtu);
  visit.required("tcp_header", model.tcp_header);
  visit.required("cable_latency", model.cable_latency);
  visit.required("switch_latency", model.switch_latency);
}

}  // namespace gdr
