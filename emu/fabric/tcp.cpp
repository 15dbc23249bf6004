#include "emu/fabric/tcp.hpp"

#include <algorithm>

#include "emu/fabric/wire.hpp"

namespace gdr::fabric {
namespace {

constexpr std::uint8_t protocol_tcp = 6;
constexpr std::size_t least_header_bytes = 20;
constexpr std::uint8_t flag_syn = 0x02;

}  // namespace

std::optional<TcpSegment> parse_tcp(FrameView frame) {
  const auto packet = find_ip(frame);
  if (!packet || packet->protocol != protocol_tcp ||
      packet->end < packet->transport + least_header_bytes)
    return std::nullopt;
  const std::size_t at = packet->transport;
  const std::size_t header = std::size_t{frame[at + 12]} / 16 * 4;
  if (header < least_header_bytes || packet->end < at + header) return std::nullopt;
  return TcpSegment{{packet->source, packet->destination, load16(frame, at), load16(frame, at + 2)},
                    load32(frame, at + 4),
                    (frame[at + 13] & flag_syn) != 0,
                    frame.subspan(at + header, packet->end - at - header)};
}

void TcpCounter::count(FrameView frame) {
  const auto segment = parse_tcp(frame);
  if (!segment) return;
  const auto& [key, sequence, opens, bytes] = *segment;
  auto found = flows_.find(key);
  if (found == flows_.end()) {
    if (flows_.size() == max_flows) {
      ++left_out_;
      return;
    }
    found = flows_.emplace(key, State{{key, 0, {}, {}}, sequence}).first;
  }
  State& state = found->second;
  ++state.flow.segments;
  // SYN takes one number. A new connection may reuse the ports with another initial number.
  if (opens) state.next = sequence + 1;
  const auto payload = static_cast<std::uint32_t>(bytes.size());
  if (payload == 0 || opens) return;
  // Bytes of this segment beyond the highest byte seen, modulo 2^32.
  const auto beyond = static_cast<std::int32_t>(sequence + payload - state.next);
  const std::uint32_t fresh =
      beyond <= 0 ? 0 : std::min(payload, static_cast<std::uint32_t>(beyond));
  state.flow.payload = state.flow.payload + Bytes{fresh};
  state.flow.repeated_payload = state.flow.repeated_payload + Bytes{payload - fresh};
  if (beyond > 0) state.next = sequence + payload;
}

std::vector<TcpFlow> TcpCounter::flows() const {
  std::vector<TcpFlow> flows;
  for (const auto& [key, state] : flows_) flows.push_back(state.flow);
  return flows;
}

}  // namespace gdr::fabric
