#include "sim/flow/movers/movers.hpp"

namespace gdr::sim {
namespace {

constexpr std::uint64_t tcp_ip_headers = 52;  // IPv4 20, TCP with time stamps 32

}  // namespace

StageSpec time_wire(FlowContext& flow, const Stage& stage) {
  const FabricModel& fabric = flow.hardware.fabric();
  const bool tcp = stage.protocol == Protocol::tcp;
  StageSpec spec{.step = {StepKind::wire, stage.engine, stage.from, stage.to},
                 .granule = piece_of(flow, stage)};
  spec.packet = tcp ? Bytes{fabric.tcp_mtu.value.count - tcp_ip_headers} : stage.piece;
  spec.units_per_packet = (tcp ? fabric.tcp_header.value : fabric.packet_header.value).as_double();
  const double per_byte = units_per_byte(flow, spec);
  for (const Hop& hop : stage.data)
    use(flow, spec,
        flow.resources.number(*resource_of(flow.graph(), hop),
                              *capacity_of(flow.hardware, stage, hop), false),
        per_byte);
  const NicModel& sender = flow.hardware.nic(stage.from);
  if (!tcp && sender.queue_pair_bandwidth)
    limit(flow, spec, sender.queue_pair_bandwidth->value * flow.drive.queue_pairs,
          {.kind = LimitKind::queue_pair, .at = stage.from});
  spec.latency = flow.hardware.wire_latency() + flow.hardware.nic(stage.to).receive_latency.value;
  return spec;
}

}  // namespace gdr::sim
