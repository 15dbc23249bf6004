#include "emu/fabric/frame.hpp"

#include <algorithm>

#include "emu/fabric/wire.hpp"
#include "src/common/check.hpp"

namespace gdr::fabric {
namespace {

constexpr std::size_t ipv4_header_bytes = 20;
constexpr std::size_t ipv6_header_bytes = 40;
constexpr std::uint8_t protocol_udp = 17;

MacAddress address_at(FrameView frame, std::size_t offset) {
  check(frame.size() >= ethernet_header_bytes, "the frame has no Ethernet header");
  MacAddress address{};
  std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(offset), address.size(), address.begin());
  return address;
}

std::optional<IpPacket> find_ipv4(FrameView frame, std::size_t at) {
  if (frame.size() < at + ipv4_header_bytes || frame[at] >> 4U != 4) return std::nullopt;
  const std::size_t header_bytes = std::size_t{frame[at] & 0xfU} * 4;
  const std::size_t total = load16(frame, at + 2);
  if (header_bytes < ipv4_header_bytes || total < header_bytes || frame.size() < at + total)
    return std::nullopt;
  IpPacket packet;
  packet.version = 4;
  packet.header = at;
  packet.transport = at + header_bytes;
  packet.end = at + total;
  // A fragment: more follow, or it has an offset.
  const bool fragment = (load16(frame, at + 6) & 0x3fffU) != 0;
  packet.protocol = fragment ? std::uint8_t{0} : frame[at + 9];
  packet.source[10] = packet.source[11] = packet.destination[10] = packet.destination[11] = 0xff;
  const auto addresses = frame.subspan(at + 12, 8);
  std::copy_n(addresses.begin(), 4, packet.source.begin() + 12);
  std::copy_n(addresses.begin() + 4, 4, packet.destination.begin() + 12);
  return packet;
}

std::optional<IpPacket> find_ipv6(FrameView frame, std::size_t at) {
  if (frame.size() < at + ipv6_header_bytes || frame[at] >> 4U != 6) return std::nullopt;
  const std::size_t payload = load16(frame, at + 4);
  if (frame.size() < at + ipv6_header_bytes + payload) return std::nullopt;
  IpPacket packet;
  packet.version = 6;
  packet.header = at;
  packet.transport = at + ipv6_header_bytes;
  packet.end = packet.transport + payload;
  packet.protocol = frame[at + 6];
  const auto addresses = frame.subspan(at + 8, 32);
  std::copy_n(addresses.begin(), 16, packet.source.begin());
  std::copy_n(addresses.begin() + 16, 16, packet.destination.begin());
  return packet;
}

}  // namespace

MacAddress destination_of(FrameView frame) { return address_at(frame, 0); }
MacAddress source_of(FrameView frame) { return address_at(frame, 6); }
bool is_multicast(const MacAddress& address) { return (address[0] & 1U) != 0; }

bool is_link_local(const MacAddress& address) {
  constexpr std::array<std::uint8_t, 5> prefix{0x01, 0x80, 0xc2, 0x00, 0x00};
  return std::equal(prefix.begin(), prefix.end(), address.begin()) && address[5] <= 0x0f;
}

std::optional<IpPacket> find_ip(FrameView frame) {
  std::size_t type_at = 12;
  for (int tags = 0; tags <= 2; ++tags, type_at += 4) {
    if (frame.size() < type_at + 2) return std::nullopt;
    const std::uint16_t type = load16(frame, type_at);
    if (type == 0x0800) return find_ipv4(frame, type_at + 2);
    if (type == 0x86dd) return find_ipv6(frame, type_at + 2);
    if (type != 0x8100 && type != 0x88a8) return std::nullopt;
  }
  return std::nullopt;
}

bool mark_congestion(Frame& frame) {
  const auto packet = find_ip(frame);
  if (!packet) return false;
  const std::size_t at = packet->header;
  // ECN is the lowest two bits of the traffic class: byte 1 in IPv4; in IPv6 the class straddles
  // bytes 0 and 1.
  const unsigned shift = packet->version == 4 ? 0 : 4;
  const unsigned ecn = (frame[at + 1] >> shift) & 3U;
  if (ecn == 0 || ecn == 3) return false;
  const std::uint16_t before = load16(frame, at);
  frame[at + 1] = static_cast<std::uint8_t>(frame[at + 1] | (3U << shift));
  if (packet->version != 4) return true;
  // RFC 1624, equation 3: HC' = ~(~HC + ~m + m').
  std::uint32_t sum =
      std::uint32_t{0xffffU & ~load16(frame, at + 10)} + (0xffffU & ~before) + load16(frame, at);
  sum = (sum & 0xffffU) + (sum >> 16U);
  sum = (sum & 0xffffU) + (sum >> 16U);
  store16(frame, at + 10, static_cast<std::uint16_t>(~sum));
  return true;
}

bool corrupt_payload(Frame& frame, std::uint64_t random) {
  std::size_t begin = ethernet_header_bytes;
  std::size_t end = frame.size();
  if (const auto packet = find_ip(frame); packet && packet->protocol == protocol_udp) {
    begin = packet->transport + udp_header_bytes;
    end = packet->end;
  }
  if (begin >= end) return false;
  const std::size_t chosen = begin + static_cast<std::size_t>((random >> 8U) % (end - begin));
  frame[chosen] = static_cast<std::uint8_t>(frame[chosen] ^
                                            (1U + static_cast<unsigned>((random & 0xffU) % 255)));
  return true;
}

}  // namespace gdr::fabric
