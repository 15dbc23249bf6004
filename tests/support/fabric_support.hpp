#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

#include "emu/fabric/frame.hpp"
#include "emu/fabric/wire.hpp"
#include "src/common/error.hpp"

namespace gdr::fabric::test {

inline MacAddress mac(std::uint8_t last) { return {0x52, 0x54, 0x00, 0x00, 0x00, last}; }
inline constexpr MacAddress broadcast{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

/// A frame of an experimental type; its payload counts up from `mark`.
inline Frame plain_frame(const MacAddress& destination, const MacAddress& source,
                         std::size_t size = 100, std::uint8_t mark = 0) {
  Frame frame(size);
  std::copy(destination.begin(), destination.end(), frame.begin());
  std::copy(source.begin(), source.end(), frame.begin() + 6);
  store16(frame, 12, 0x88b5);
  for (std::size_t i = ethernet_header_bytes; i < size; ++i)
    frame[i] = static_cast<std::uint8_t>(mark + i);
  return frame;
}

inline std::uint16_t ipv4_checksum(FrameView header) {
  std::uint32_t sum = 0;
  for (std::size_t at = 0; at < header.size(); at += 2) sum += load16(header, at);
  while (sum > 0xffff) sum = (sum & 0xffffU) + (sum >> 16U);
  return static_cast<std::uint16_t>(~sum);
}

struct Roce {
  std::uint8_t opcode = 0x04;  // send only
  std::uint32_t psn = 0;
  std::uint32_t qp = 0x11;
  std::size_t payload = 64;
  std::initializer_list<std::uint8_t> extension = {};  // headers between BTH and payload
  std::uint8_t padding = 0;
  std::uint8_t ecn = 2;   // ECT(0)
  std::uint8_t from = 1;  // 10.0.0.FROM and mac(FROM)
  std::uint8_t to = 2;
  bool ipv6 = false;
};

/// A RoCEv2 frame with a correct IPv4 checksum and an ICRC of zero.
inline Frame roce_frame(const Roce& roce) {
  const std::size_t datagram = 8 + 12 + roce.extension.size() + roce.payload + roce.padding + 4;
  const std::size_t ip_header = roce.ipv6 ? 40 : 20;
  Frame frame =
      plain_frame(mac(roce.to), mac(roce.from), ethernet_header_bytes + ip_header + datagram);
  store16(frame, 12, roce.ipv6 ? 0x86dd : 0x0800);
  const std::size_t ip = ethernet_header_bytes;
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(ip), ip_header, std::uint8_t{0});
  if (roce.ipv6) {
    frame[ip] = 0x60;
    frame[ip + 1] = static_cast<std::uint8_t>(roce.ecn << 4U);
    store16(frame, ip + 4, static_cast<std::uint16_t>(datagram));
    frame[ip + 6] = 17;
    frame[ip + 7] = 64;
    frame[ip + 8] = frame[ip + 24] = 0xfd;
    frame[ip + 23] = roce.from;
    frame[ip + 39] = roce.to;
  } else {
    frame[ip] = 0x45;
    frame[ip + 1] = roce.ecn;
    store16(frame, ip + 2, static_cast<std::uint16_t>(20 + datagram));
    frame[ip + 8] = 64;
    frame[ip + 9] = 17;
    store32(frame, ip + 12, 0x0a000000U + roce.from);
    store32(frame, ip + 16, 0x0a000000U + roce.to);
    store16(frame, ip + 10, ipv4_checksum(FrameView(frame).subspan(ip, 20)));
  }
  const std::size_t udp = ip + ip_header;
  store16(frame, udp, 49152);
  store16(frame, udp + 2, 4791);
  store16(frame, udp + 4, static_cast<std::uint16_t>(datagram));
  store16(frame, udp + 6, 0);
  const std::size_t bth = udp + 8;
  frame[bth] = roce.opcode;
  frame[bth + 1] = static_cast<std::uint8_t>(roce.padding << 4U);
  store16(frame, bth + 2, 0xffff);
  store32(frame, bth + 4, roce.qp);
  store32(frame, bth + 8, roce.psn);
  std::copy(roce.extension.begin(), roce.extension.end(),
            frame.begin() + static_cast<std::ptrdiff_t>(bth + 12));
  std::fill(frame.end() - 4, frame.end(), std::uint8_t{0});
  return frame;
}

struct Segment {
  std::uint32_t sequence = 1000;
  std::size_t payload = 100;
  bool syn = false;
  std::uint16_t from_port = 40000;
  std::uint8_t options = 12;  // time stamps
};

/// From 10.0.0.1 to 10.0.0.2; the payload counts up.
inline Frame tcp_frame(const Segment& segment) {
  const std::size_t header = 20U + segment.options;
  const std::size_t total = 20 + header + segment.payload;
  Frame frame =
      plain_frame(mac(2), mac(1), std::max<std::size_t>(60, ethernet_header_bytes + total));
  store16(frame, 12, 0x0800);
  const std::size_t ip = ethernet_header_bytes;
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(ip), 20 + header, std::uint8_t{0});
  frame[ip] = 0x45;
  store16(frame, ip + 2, static_cast<std::uint16_t>(total));
  frame[ip + 8] = 64;
  frame[ip + 9] = 6;
  store32(frame, ip + 12, 0x0a000001U);
  store32(frame, ip + 16, 0x0a000002U);
  const std::size_t tcp = ip + 20;
  store16(frame, tcp, segment.from_port);
  store16(frame, tcp + 2, 18515);
  store32(frame, tcp + 4, segment.sequence);
  frame[tcp + 12] = static_cast<std::uint8_t>(header / 4 << 4U);
  frame[tcp + 13] = segment.syn ? 0x02 : 0x10;
  return frame;
}

inline FramePtr shared(Frame frame) { return std::make_shared<const Frame>(std::move(frame)); }

/// The text of the InputError, or "accepted".
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

}  // namespace gdr::fabric::test
