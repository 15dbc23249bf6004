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

/// Of frames of at least 14 bytes.
MacAddress destination_of(FrameView frame);
MacAddress source_of(FrameView frame);
/// Group addresses, broadcast included.
bool is_multicast(const MacAddress& address);
/// 01:80:c2:00:00:00 to 0f: pause frames, spanning tree, LLDP. They are for the switch itself; IEEE
/// 802.1D bridges pass none on.
bool is_link_local(const MacAddress& address);

/// Where the IP packet of a frame lies. All offsets are within the frame.
struct IpPacket {
  int version = 4;
  std::size_t header = 0;     ///< offset of the IP header
  std::size_t transport = 0;  ///< offset behind it
  std::size_t end = 0;        ///< offset behind the packet: Ethernet padding is not part of it
  std::uint8_t protocol = 0;  ///< 17 is UDP; 0 for fragments, whose transport header is elsewhere
  IpAddress source{};
  IpAddress destination{};
};

/// The IPv4 or IPv6 packet behind up to two VLAN tags; nullopt where there is none, or where its
/// lengths do not fit the frame. IPv6 extension headers are not followed.
std::optional<IpPacket> find_ip(FrameView frame);

/// Sets congestion experienced (ECN, RFC 3168) in a packet whose sender can do ECN, and mends the
/// IPv4 checksum. Returns false, and changes nothing, for all other frames and those that are
/// marked already.
bool mark_congestion(Frame& frame);

/// Flips bits of one byte of the payload: behind the UDP header where there is one, else behind the
/// Ethernet header. So addresses and lengths stay. `random` chooses byte and bits. Returns false
/// for frames without payload.
bool corrupt_payload(Frame& frame, std::uint64_t random);

}  // namespace gdr::fabric
