#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emu/fabric/frame.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// The header fields of a RoCEv2 packet (UDP port 4791): InfiniBand Architecture Specification 1.4,
/// chapter 9 and annex A17.
struct RocePacket {
  IpAddress source{};
  IpAddress destination{};
  std::uint8_t opcode = 0;
  std::uint32_t destination_qp = 0;        ///< 24 bits
  std::uint32_t psn = 0;                   ///< packet sequence number, 24 bits
  std::optional<std::uint32_t> source_qp;  ///< datagrams only
  std::optional<Bytes> dma_length;         ///< in RETH: the length of the whole message
  Bytes payload;                           ///< without headers, padding and ICRC
  /// Read data, atomic results and acknowledgements: their PSN is from the requester's sequence.
  bool response = false;

  bool operator==(const RocePacket&) const = default;
};

/// nullopt: not RoCEv2, an unknown opcode, or lengths that do not fit. The ICRC is not checked.
std::optional<RocePacket> parse_roce(FrameView frame);

/// Identifies packets that share a PSN sequence: one direction of one queue pair. For datagrams
/// source_qp distinguishes the senders.
struct RoceFlowKey {
  IpAddress source{};
  IpAddress destination{};
  std::uint32_t destination_qp = 0;
  std::optional<std::uint32_t> source_qp;
  bool response = false;
  auto operator<=>(const RoceFlowKey&) const = default;
};

/// The traffic of a flow. A packet whose PSN was seen before is a repetition, and its payload does
/// not count again.
struct RoceFlow {
  RoceFlowKey key;
  std::uint64_t packets = 0;
  Bytes payload;
  Bytes announced;  ///< sum of the DMA lengths in RETHs: bytes that writes will carry and reads
                    ///< request
  std::uint64_t repeated_packets = 0;
  Bytes repeated_payload;
  bool operator==(const RoceFlow&) const = default;
};

/// Remembers which of the last 65,536 PSNs of a flow were seen. Senders have far fewer in flight,
/// so an older PSN is not a repetition but a new connection with the same number.
class PsnWindow {
 public:
  static constexpr std::uint32_t size = 1U << 16U;

  /// True when this PSN (24 bits) is seen for the first time.
  bool first_time(std::uint32_t psn);

 private:
  void forget(std::uint32_t first, std::uint32_t count);

  std::vector<std::uint64_t> seen_;  // one bit per PSN, modulo the size; empty before the first PSN
  std::uint32_t highest_ = 0;
};

/// Counts the RoCEv2 payload at one point.
class RoceCounter {
 public:
  /// Packets of further flows only count in left_out, since each flow's window takes 8 KiB.
  static constexpr std::size_t max_flows = 4096;

  void count(FrameView frame);
  /// In the order of their keys.
  [[nodiscard]] std::vector<RoceFlow> flows() const;
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }

 private:
  struct State {
    RoceFlow flow;
    PsnWindow window;
  };
  std::map<RoceFlowKey, State> flows_;
  std::uint64_t left_out_ = 0;
};

/// "10.0.0.1" or the sixteen-bit groups of an IPv6 address ("fe80:0:0:0:5054:ff:fe00:1").
std::string to_string(const IpAddress& address);

}  // namespace gdr::fabric
