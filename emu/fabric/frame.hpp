#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace gdr::fabric {

/// An Ethernet frame from the destination address on, without preamble and check sequence.
using Frame = std::vector<std::uint8_t>;
using FramePtr = std::shared_ptr<const Frame>;
using FrameView = std::span<const std::uint8_t>;

using MacAddress = std::array<std::uint8_t, 6>;
/// An IPv6 address in network order; IPv4 as ::ffff:a.b.c.d.
using IpAddress = std::array<std::uint8_t, 16>;

inline constexpr std::size_t ethernet_header_bytes = 14;
inline constexpr std::size_t udp_header_bytes = 8;
inline constexpr std::size_t max_frame_bytes = 65536;

/// The frame must have at least 14 bytes.
MacAddress destination_of(FrameView frame);
MacAddress source_of(FrameView frame);
/// Group addresses, broadcast included.
bool is_multicast(const MacAddress& address);
/// True for 01:80:c2:00:00:00 to 0f (pause frames, spanning tree, LLDP), which IEEE 802.1D bridges
/// do not forward.
bool is_link_local(const MacAddress& address);

/// The location of the IP packet in a frame. All offsets are within the frame.
struct IpPacket {
  int version = 4;
  std::size_t header = 0;     ///< offset of the IP header
  std::size_t transport = 0;  ///< offset after the IP header
  std::size_t end = 0;        ///< offset after the packet, without Ethernet padding
  std::uint8_t protocol = 0;  ///< 17 is UDP; 0 for fragments, which have no transport header
  IpAddress source{};
  IpAddress destination{};
};

/// Finds the IPv4 or IPv6 packet after up to two VLAN tags; nullopt if there is none or its lengths
/// do not fit the frame. Does not parse IPv6 extension headers.
std::optional<IpPacket> find_ip(FrameView frame);

/// Sets "congestion experienced" (ECN, RFC 3168) in an ECN-capable packet and updates the IPv4
/// checksum. Returns false for all other frames and those already marked, which stay unchanged.
bool mark_congestion(Frame& frame);

/// Flips bits of one byte after the UDP header or, without one, after the Ethernet header, so that
/// addresses and lengths stay intact. `random` selects byte and bits. Returns false for frames
/// without payload.
bool corrupt_payload(Frame& frame, std::uint64_t random);

}  // namespace gdr::fabric
