#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "emu/fabric/frame.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// One direction of a TCP connection (RFC 9293).
struct TcpFlowKey {
  IpAddress source{};
  IpAddress destination{};
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  auto operator<=>(const TcpFlowKey&) const = default;
};

/// A segment of a connection.
struct TcpSegment {
  TcpFlowKey key;
  std::uint32_t sequence = 0;
  bool begins = false;  ///< SYN: it takes one sequence number
  FrameView payload;
};
/// nullopt: not TCP, or lengths that do not fit.
std::optional<TcpSegment> parse_tcp(FrameView frame);

struct TcpFlow {
  TcpFlowKey key;
  std::uint64_t segments = 0;
  Bytes payload;           ///< new bytes of the stream
  Bytes repeated_payload;  ///< bytes at sequence numbers seen before
  bool operator==(const TcpFlow&) const = default;
};

/// Counts the TCP payload at one point. Only the highest sequence number is remembered: bytes after
/// a gap count on arrival, and bytes that fill the gap later count as repeated.
class TcpCounter {
 public:
  /// Segments of further flows only count in left_out.
  static constexpr std::size_t max_flows = 4096;

  void count(FrameView frame);
  /// In the order of their keys.
  [[nodiscard]] std::vector<TcpFlow> flows() const;
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct State {
    TcpFlow flow;
    std::uint32_t next = 0;  ///< after the highest byte seen
  };
  std::map<TcpFlowKey, State> flows_;
  std::uint64_t left_out_ = 0;
};

}  // namespace gdr::fabric
