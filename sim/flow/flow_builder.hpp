#pragma once

#include <algorithm>
#include <optional>
#include <string>

#include "sim/flow/build.hpp"

namespace gdr::sim {

// NCCL's defaults: a buffer of 4 MiB (NCCL_BUFFSIZE) in 8 steps.
constexpr Bytes default_chunk{512U << 10U};
constexpr int default_chunks = 8;
// Memory below this is served by the last-level cache where DMA allocates in it (two ways of a
// small one).
constexpr std::uint64_t cache_share = std::uint64_t{8} << 20U;
// Messaging libraries and the CUDA driver fill one buffer while the other is emptied.
constexpr int double_buffer = 2;
// cuFile keeps 128 MiB of page-locked buffers for drives that it cannot reach directly
// (max_device_pinned_mem_size is of that order).
constexpr int storage_buffers = 256;

/// The name of the resource that a link of a route is, in the hop's direction: what bottleneck()
/// calls it. Empty for NVLink, whose resources are the GPUs' (their names hold "NVLink").
std::string link_resource(const Hardware& hardware, const Hop& hop);

/// Builds one flow.
class FlowBuilder {
 public:
  FlowBuilder(ScenarioBuilder& all, const TransferPlan& plan, const Drive& drive)
      : all_(all),
        hardware_(*all.hardware_),
        graph_(hardware_.graph()),
        plan_(plan),
        drive_(drive),
        size_(plan.transfer.size) {
    const bool one_host = plan.transfer.from.host == plan.transfer.to.host;
    if (plan.transfer.operation == Operation::send || one_host) chunks_ = double_buffer;
    for (const Stage& stage : plan.stages)
      if (stage.mover == Mover::device_dma) chunks_ = storage_buffers;
    const auto& staging = graph_.topology().staging;
    if (staging && staging->chunk) chunk_ = *staging->chunk;
    if (staging && staging->depth) chunks_ = *staging->depth;
    buffer_ = chunk_;
    chunk_ = staged() || tcp() || plan.transfer.pageable ? even_chunk(chunk_) : size_;
    if (graph_.topology().fabric)
      mtu_ = graph_.topology().fabric->mtu.value_or(hardware_.fabric().mtu.value);
  }

  void build();

 private:
  /// `of_plan`: the stage is the current one of the plan, not something that the CPU does around
  /// it.
  std::size_t push(StageSpec spec, bool of_plan = true) {
    if (of_plan) spec.plan_stage = plan_stage_;
    flow_.stages.push_back(std::move(spec));
    return flow_.stages.size() - 1;
  }
  [[nodiscard]] bool tcp() const { return plan_.transfer.path == PathKind::tcp; }
  [[nodiscard]] bool staged() const {
    return plan_.transfer.path == PathKind::staged ||
           (plan_.transfer.path == PathKind::tcp && plan_.transfer.memory == MemoryKind::gpu);
  }
  [[nodiscard]] Bytes nic_granule() const;
  [[nodiscard]] VertexId driver(std::size_t host, std::size_t numa) const {
    return graph_.socket(host, graph_.socket_of_numa(host, numa));
  }

  /// At most a buffer; a message that needs several fills them evenly, in whole pages.
  [[nodiscard]] Bytes even_chunk(Bytes buffer) const {
    const std::uint64_t chunks = (size_.count + buffer.count - 1) / buffer.count;
    if (chunks <= 1) return size_;
    constexpr std::uint64_t page = 4096;
    const std::uint64_t even = (size_.count + chunks - 1) / chunks;
    return std::min(buffer, Bytes{(even + page - 1) / page * page});
  }

  void use(StageSpec& spec, std::size_t resource, double units_per_byte);
  void use_route(StageSpec& spec, const Stage& stage, double units_per_byte);
  void use_root_complex(StageSpec& spec, const Stage& stage, double units_per_byte);
  void note_fan_out(const Stage& stage, std::size_t in, std::size_t out, double units_per_byte);
  void dma(StageSpec& spec, const Stage& stage);
  void send_requests(StageSpec& spec, const Stage& stage, Bytes request);
  void over_nvlink(StageSpec& spec, const Stage& stage);
  void limit(StageSpec& spec, Bandwidth payload, const std::string& name);

  void add_launch(const Stage& copy);
  void add_copy(const Stage& stage, bool last);
  void add_post();
  void post_after_copy();
  void add_cpu_copy(const Stage& stage);
  void add_pageable_copy(const Stage& stage);
  void add_nic_read(const Stage& stage);
  void add_wire(const Stage& stage);
  void add_nic_write(const Stage& stage, bool last);
  void add_device_dma(const Stage& stage);
  void add_command(const Stage& stage);
  void add_gpu_thread(const Stage& stage);
  [[nodiscard]] Duration memory_delay(const Stage& stage) const;
  void translate(StageSpec& spec, const Stage& stage);
  void post_by_gpu(StageSpec& spec, DeviceId nic);
  [[nodiscard]] Duration completion_to_gpu(DeviceId nic) const;
  void add_windows();
  void add_costs();

  [[nodiscard]] Duration doorbell(DeviceId nic, std::size_t numa) const;
  [[nodiscard]] Duration completion_write(VertexId nic, std::size_t host, std::size_t numa) const;

  ScenarioBuilder& all_;
  const Hardware& hardware_;
  const Graph& graph_;
  const TransferPlan& plan_;
  const Drive& drive_;
  Bytes size_;
  Bytes chunk_ = default_chunk;
  Bytes buffer_ = default_chunk;
  int chunks_ = default_chunks;
  Bytes mtu_{4096};
  std::size_t plan_stage_ = 0;
  FlowSpec flow_;
  Costs costs_;
  std::optional<std::size_t> nic_read_, wire_, nic_write_, cpu_out_, cpu_in_, in_launch_;
};

}  // namespace gdr::sim
