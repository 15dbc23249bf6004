#include "src/report/names.hpp"

#include <fmt/format.h>

namespace gdr::sim {
namespace {

std::string_view word(Direction direction) {
  switch (direction) {
    case Direction::up:
      return "up";
    case Direction::down:
      return "down";
    case Direction::out:
      return "out";
    case Direction::in:
      return "in";
    case Direction::reads:
      return "reads";
    case Direction::writes:
      return "writes";
    case Direction::both:
      break;
  }
  return {};
}

/// What names are made with.
class Words {
 public:
  explicit Words(const Hardware& hardware) : hardware_(hardware) {}

  std::string operator()(std::monostate) const { return {}; }
  std::string operator()(const ResourceId& id) const;
  std::string operator()(const LimitId& id) const;
  std::string operator()(const WindowId& id) const;
  std::string operator()(const StepId& id) const;

 private:
  [[nodiscard]] std::string label(VertexId id) const { return hardware_.graph().label(id); }

  const Hardware& hardware_;
};

std::string Words::operator()(const ResourceId& id) const {
  const std::string at = label(id.at);
  const std::string_view direction = word(id.direction);
  const bool reads = id.direction == Direction::reads;
  switch (id.kind) {
    case ResourceKind::link:
      return fmt::format("{} link {}", at, direction);
    case ResourceKind::root_complex:
      return fmt::format("{} root complex {}", at, direction);
    case ResourceKind::memory:
      return at + " memory";
    case ResourceKind::socket_link: {
      const auto& own = hardware_.cpu(id.at).socket_link_name;
      return fmt::format("{} to {} {}", at, label(id.to), own ? own->value : "socket link");
    }
    case ResourceKind::c2c:
      return fmt::format("{} C2C {}", at, direction);
    case ResourceKind::port:
      return fmt::format("{} port {}", at, direction);
    case ResourceKind::nvlink_end:
      return fmt::format("{} NVLink {}", at, direction);
    case ResourceKind::nvlink_pair:
      return fmt::format("{} to {} NVLink", at, label(id.to));
    case ResourceKind::copy_engines:
      return at + " copy engines";
    case ResourceKind::bar:
      return fmt::format("{} BAR {}", at, direction);
    case ResourceKind::dma:
      return fmt::format("{} DMA {}", at, direction);
    case ResourceKind::messages:
      return at + " message pipeline";
    case ResourceKind::commands:
      return fmt::format("{} {} commands", at, reads ? "read" : "write");
    case ResourceKind::medium:
      return fmt::format("{} {} its medium", at, reads ? "reads of" : "writes to");
    case ResourceKind::peer_port:
      return fmt::format("peer {} to {}", direction, at);
    case ResourceKind::remote_peer_port:
      return fmt::format("remote peer {} to {}", direction, at);
    case ResourceKind::fan_out:
      return fmt::format("peer writes of {} to several root ports", at);
  }
  return {};
}

std::string Words::operator()(const LimitId& id) const {
  const std::string at = id.at ? label(*id.at) : "";
  const std::string window = fmt::format("{}/{:.0f}ns", to_string(id.window), id.round_trip.ns());
  switch (id.kind) {
    case LimitKind::copy_engine:
      return at + " copy engine";
    case LimitKind::core_copies:
      return "one core's copies on " + at;
    case LimitKind::queue_pair:
      return at + " queue pair";
    case LimitKind::queue_pair_messages:
      return at + " messages of a queue pair";
    case LimitKind::read_window:
      return fmt::format("{} read window {}", at, window);
    case LimitKind::posted_credits:
      return "posted-write credits";
    case LimitKind::strict_order:
      return at + " writes without relaxed ordering";
    case LimitKind::remote_peer_writes:
      return "peer writes under way across sockets " + window;
    case LimitKind::page_walks:
      return fmt::format("IOMMU page walks ({:.0f} % of translations miss)", id.miss_share * 100);
  }
  return {};
}

std::string Words::operator()(const WindowId& id) const {
  switch (id.kind) {
    case WindowKind::queue_depth:
      return fmt::format("queue depth {}", id.depth);
    case WindowKind::staging_buffers:
      return "bounce buffers";
    case WindowKind::nic_buffer:
      return "NIC buffer";
    case WindowKind::socket_buffers:
      return "socket buffers";
    case WindowKind::queue_pair:
      return "queue pair window";
    case WindowKind::rdma_reads:
      return "outstanding RDMA reads";
  }
  return {};
}

std::string Words::operator()(const StepId& id) const {
  const auto at = [&](const std::optional<VertexId>& place) { return place ? label(*place) : ""; };
  const std::string by = at(id.by);
  switch (id.kind) {
    case StepKind::launch:
      return "launch copy on " + by;
    case StepKind::post:
      return "post to " + at(id.to);
    case StepKind::gpu_post:
      return fmt::format("post on {} to {}", by, at(id.to));
    case StepKind::command:
      return "command to " + by;
    case StepKind::descriptor:
      return "descriptor on " + by;
    case StepKind::engine_copy:
      return fmt::format("copy {} to {}", at(id.from), at(id.to));
    case StepKind::socket_send:
      return "socket send on " + by;
    case StepKind::socket_receive:
      return "socket receive on " + by;
    case StepKind::core_copy:
      return "copy by " + by;
    case StepKind::dma_read:
      return fmt::format("{} reads {}", by, at(id.from));
    case StepKind::dma_write:
      return fmt::format("{} writes {}", by, at(id.to));
    case StepKind::wire:
      return "wire";
    case StepKind::load:
      return fmt::format("{} loads from {}", by, at(id.from));
    case StepKind::store:
      return fmt::format("{} stores to {}", by, at(id.to));
  }
  return {};
}

}  // namespace

std::string name(const Hardware& hardware, const Bottleneck& what) {
  return std::visit(Words(hardware), what);
}

}  // namespace gdr::sim
