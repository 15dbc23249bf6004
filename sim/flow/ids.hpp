#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "src/common/units.hpp"
#include "src/hardware/graph.hpp"

namespace gdr::sim {

// Identities of resources, limits, windows and steps, to be compared as data. src/report/names.hpp
// turns them into text.

enum class ResourceKind {
  link,              ///< the PCIe link above the device `at`
  root_complex,      ///< a host bridge and the fabric of its socket
  memory,            ///< of a NUMA node or a GPU
  socket_link,       ///< from the socket `at` to the socket `to`
  c2c,               ///< between the GPU `at` and its CPU
  port,              ///< of a NIC, to the network
  nvlink_end,        ///< the links of the GPU `at` to NVSwitches
  nvlink_pair,       ///< from the GPU `at` to the GPU `to`
  copy_engines,      ///< of a GPU
  bar,               ///< what a GPU serves to other devices
  dma,               ///< of a NIC, to and from memory
  messages,          ///< a NIC's per-message work, one message after the other
  commands,          ///< of a drive
  medium,            ///< of a drive
  peer_port,         ///< traffic from other root ports of the socket, to the port of `at`
  remote_peer_port,  ///< the same from another socket
  fan_out,           ///< peer writes from below the root port of `at` to several others
};

enum class Direction { both, up, down, out, in, reads, writes };

/// Something with a capacity that flows share. Equal ids are one resource, whoever uses it.
struct ResourceId {
  ResourceKind kind = ResourceKind::link;
  VertexId at = 0;
  Direction direction = Direction::both;
  VertexId to = 0;
  auto operator<=>(const ResourceId&) const = default;
};

enum class LimitKind {
  copy_engine,          ///< one of a GPU's
  core_copies,          ///< what one core copies
  queue_pair,           ///< bytes of one queue pair
  queue_pair_messages,  ///< messages of one queue pair
  read_window,          ///< bytes requested and not yet there
  posted_credits,
  strict_order,        ///< writes without relaxed ordering
  remote_peer_writes,  ///< under way across sockets
  page_walks,          ///< of an IOMMU
};

/// What bounds a stage of one flow alone.
struct LimitId {
  LimitKind kind = LimitKind::posted_credits;
  std::optional<VertexId> at{};  ///< the device or socket whose limit it is
  Bytes window{};                ///< read_window, remote_peer_writes: bytes under way at most...
  Duration round_trip{};         ///< ...which come back after this time
  double miss_share = 0;         ///< page_walks: share of translations that miss
  bool operator==(const LimitId&) const = default;
};

enum class WindowKind {
  queue_depth,
  staging_buffers,
  nic_buffer,
  socket_buffers,
  queue_pair,  ///< bytes sent and not yet acknowledged
  rdma_reads,  ///< outstanding on the network
};

/// What bounds the bytes that are under way between two stages.
struct WindowId {
  WindowKind kind = WindowKind::queue_depth;
  std::uint64_t depth = 0;  ///< of queue_depth: messages
  bool operator==(const WindowId&) const = default;
};

enum class StepKind {
  launch,      ///< the CPU calls a copy of the GPU `by`
  post,        ///< a thread of the host posts to the NIC `to`
  gpu_post,    ///< a thread of the GPU `by` posts
  command,     ///< a command to the drive `by`
  descriptor,  ///< for the NIC `by`'s own DMA engine
  engine_copy,
  socket_send,
  socket_receive,
  core_copy,
  dma_read,   ///< the device `by` reads `from`
  dma_write,  ///< it writes `to`
  wire,
  load,
  store,
};

/// A stage of a flow: of the plan, or what a CPU or GPU does to start one.
struct StepId {
  StepKind kind = StepKind::wire;
  std::optional<VertexId> by{};  ///< the device or socket that does it
  std::optional<VertexId> from{};
  std::optional<VertexId> to{};
  bool operator==(const StepId&) const = default;
};

/// What holds a flow back: a resource, a limit, a window, or a step that is always busy.
using Bottleneck = std::variant<std::monostate, ResourceId, LimitId, WindowId, StepId>;

inline bool is(const Bottleneck& bottleneck, ResourceKind kind) {
  const auto* resource = std::get_if<ResourceId>(&bottleneck);
  return resource != nullptr && resource->kind == kind;
}
inline bool is(const Bottleneck& bottleneck, LimitKind kind) {
  const auto* limit = std::get_if<LimitId>(&bottleneck);
  return limit != nullptr && limit->kind == kind;
}
inline bool is(const Bottleneck& bottleneck, WindowKind kind) {
  const auto* window = std::get_if<WindowId>(&bottleneck);
  return window != nullptr && window->kind == kind;
}

}  // namespace gdr::sim
