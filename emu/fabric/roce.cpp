#include "emu/fabric/roce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "emu/fabric/wire.hpp"

namespace gdr::fabric {
namespace {

constexpr std::uint16_t roce_port = 4791;
constexpr std::uint8_t protocol_udp = 17;
constexpr std::size_t bth_bytes = 12;
constexpr std::size_t icrc_bytes = 4;
constexpr std::uint32_t psn_mask = 0xffffff;

/// The headers between BTH and payload.
struct Opcode {
  bool known = false;
  bool response = false;
  bool reth = false;      // the first of them is a RETH
  std::size_t bytes = 0;  // total size
};

constexpr std::size_t reth = 16;
constexpr std::size_t aeth = 4;
constexpr std::size_t immediate = 4;
constexpr std::size_t invalidate = 4;
constexpr std::size_t atomic = 28;
constexpr std::size_t atomic_result = 8;

/// Reliable connections, opcodes 0x00 to 0x17 (table 38 of the specification); the other services
/// use the same low five bits.
constexpr std::array<Opcode, 24> connection_opcodes{{
    {true, false, false, 0},                    // send first
    {true, false, false, 0},                    // send middle
    {true, false, false, 0},                    // send last
    {true, false, false, immediate},            // send last with immediate
    {true, false, false, 0},                    // send only
    {true, false, false, immediate},            // send only with immediate
    {true, false, true, reth},                  // write first
    {true, false, false, 0},                    // write middle
    {true, false, false, 0},                    // write last
    {true, false, false, immediate},            // write last with immediate
    {true, false, true, reth},                  // write only
    {true, false, true, reth + immediate},      // write only with immediate
    {true, false, true, reth},                  // read request
    {true, true, false, aeth},                  // read response first
    {true, true, false, 0},                     // read response middle
    {true, true, false, aeth},                  // read response last
    {true, true, false, aeth},                  // read response only
    {true, true, false, aeth},                  // acknowledge
    {true, true, false, aeth + atomic_result},  // atomic acknowledge
    {true, false, false, atomic},               // compare and swap
    {true, false, false, atomic},               // fetch and add
    {},                                         // reserved
    {true, false, false, invalidate},           // send last with invalidate
    {true, false, false, invalidate},           // send only with invalidate
}};

constexpr std::uint8_t service_rc = 0;
constexpr std::uint8_t service_uc = 1;
constexpr std::uint8_t service_ud = 3;

Opcode opcode_of(std::uint8_t opcode) {
  const auto service = static_cast<std::uint8_t>(opcode >> 5U);
  const std::size_t operation = opcode & 0x1fU;
  constexpr std::size_t deth = 8;
  if (service == service_ud) {
    if (operation == 4) return {true, false, false, deth};
    if (operation == 5) return {true, false, false, deth + immediate};
    return {};
  }
  const bool known = service == service_rc || (service == service_uc && operation <= 0x0b);
  return known && operation < connection_opcodes.size() ? connection_opcodes.at(operation)
                                                        : Opcode{};
}

}  // namespace

std::optional<RocePacket> parse_roce(FrameView frame) {
  const auto ip = find_ip(frame);
  if (!ip || ip->protocol != protocol_udp || ip->end < ip->transport + udp_header_bytes)
    return std::nullopt;
  if (load16(frame, ip->transport + 2) != roce_port) return std::nullopt;
  const std::size_t datagram = load16(frame, ip->transport + 4);
  if (ip->transport + datagram > ip->end || datagram < udp_header_bytes + bth_bytes + icrc_bytes)
    return std::nullopt;
  const std::size_t bth = ip->transport + udp_header_bytes;
  const Opcode opcode = opcode_of(frame[bth]);
  const std::size_t padding = (frame[bth + 1] >> 4U) & 3U;
  const std::size_t around = udp_header_bytes + bth_bytes + opcode.bytes + padding + icrc_bytes;
  if (!opcode.known || datagram < around) return std::nullopt;

  RocePacket packet;
  packet.source = ip->source;
  packet.destination = ip->destination;
  packet.opcode = frame[bth];
  packet.destination_qp = load24(frame, bth + 5);
  packet.psn = load24(frame, bth + 9);
  packet.payload = {datagram - around};
  packet.response = opcode.response;
  const std::size_t extension = bth + bth_bytes;
  if (opcode.reth) packet.dma_length = Bytes{load32(frame, extension + 12)};
  if (packet.opcode >> 5U == service_ud) packet.source_qp = load24(frame, extension + 5);
  return packet;
}

bool PsnWindow::first_time(std::uint32_t psn) {
  const std::uint32_t ahead = (psn - highest_) & psn_mask;
  const std::uint32_t behind = (highest_ - psn) & psn_mask;
  if (seen_.empty() || (behind < ahead && behind >= size)) {
    seen_.assign(size / 64, 0);
    highest_ = psn;
  } else if (behind >= ahead) {
    forget(highest_ + 1, ahead);
    highest_ = psn;
  }
  std::uint64_t& word = seen_[(psn % size) / 64];
  const std::uint64_t bit = std::uint64_t{1} << (psn % 64);
  const bool first = (word & bit) == 0;
  word |= bit;
  return first;
}

void PsnWindow::forget(std::uint32_t first, std::uint32_t count) {
  if (count >= size) {
    std::fill(seen_.begin(), seen_.end(), 0);
    return;
  }
  for (std::uint32_t psn = first; psn != first + count; ++psn)
    seen_[(psn % size) / 64] &= ~(std::uint64_t{1} << (psn % 64));
}

void RoceCounter::count(FrameView frame) {
  const auto packet = parse_roce(frame);
  if (!packet) return;
  const RoceFlowKey key{packet->source, packet->destination, packet->destination_qp,
                        packet->source_qp, packet->response};
  auto found = flows_.find(key);
  if (found == flows_.end()) {
    if (flows_.size() >= max_flows) {
      ++left_out_;
      return;
    }
    found = flows_.emplace(key, State{}).first;
    found->second.flow.key = key;
  }
  RoceFlow& flow = found->second.flow;
  // Acknowledgements reuse PSNs legitimately, so they are never counted as repetitions.
  const bool acknowledge = packet->response && packet->payload.count == 0;
  if (acknowledge || found->second.window.first_time(packet->psn)) {
    ++flow.packets;
    flow.payload = flow.payload + packet->payload;
    if (packet->dma_length) flow.announced = flow.announced + *packet->dma_length;
  } else {
    ++flow.repeated_packets;
    flow.repeated_payload = flow.repeated_payload + packet->payload;
  }
}

std::vector<RoceFlow> RoceCounter::flows() const {
  std::vector<RoceFlow> all;
  all.reserve(flows_.size());
  for (const auto& [key, state] : flows_) all.push_back(state.flow);
  return all;
}

std::string to_string(const IpAddress& address) {
  const bool v4 = address[10] == 0xff && address[11] == 0xff &&
                  std::all_of(address.begin(), address.begin() + 10, [](auto b) { return b == 0; });
  if (v4) return fmt::format("{}.{}.{}.{}", address[12], address[13], address[14], address[15]);
  std::string text;
  for (std::size_t at = 0; at < address.size(); at += 2)
    text += fmt::format("{}{:x}", at == 0 ? "" : ":", load16(address, at));
  return text;
}

}  // namespace gdr::fabric
