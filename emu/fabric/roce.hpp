#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "emu/fabric/frame.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// What a RoCEv2 packet (UDP port 4791) says of itself: InfiniBand Architecture Specification 1.4,
/// chapter 9 and annex A17.
struct RocePacket {
  IpAddress source{};
  IpAddress destination{};
  std::uint8_t opcode = 0;
  std::uint32_t destination_qp = 0;        ///< 24 bits
  std::uint32_t psn = 0;                   ///< packet sequence number, 24 bits
  std::optional<std::uint32_t> source_qp;  ///< datagrams only
  std::optional<Bytes> dma_length;         ///< of RETH: the length of the whole message
  Bytes payload;                           ///< without headers, padding and ICRC
  /// Read data, atomic results and acknowledgements: their PSN is one of the other side's, not of
  /// the sender's.
  bool response = false;

  bool operator==(const RocePacket&) const = default;
};

/// nullopt: no RoCEv2, an opcode without known headers, or lengths that do not fit. The ICRC is not
/// looked at.
std::optional<RocePacket> parse_roce(FrameView frame);

/// Which packets share PSNs: one direction of one queue pair. Datagram queue pairs tell their
/// senders apart by source_qp.
struct RoceFlowKey {
  IpAddress source{};
  IpAddress destination{};
  std::uint32_t destination_qp = 0;
  std::optional<std::uint32_t> source_qp;
  bool response = false;
  auto operator<=>(const RoceFlowKey&) const = default;
};

/// What a flow carried. A packet that comes again with a PSN seen before is a repetition: its
/// payload does not count twice.
struct RoceFlow {
  RoceFlowKey key;
  std::uint64_t packets = 0;
  Bytes payload;
  Bytes announced;  ///< DMA lengths of RETHs: of writes what follows, of read requests what is
                    ///< asked for
  std::uint64_t repeated_packets = 0;
  Bytes repeated_payload;
  bool operator==(const RoceFlow&) const = default;
};

/// Which of the last 65,536 PSNs of a flow were seen. A PSN further back than that can be no
/// repetition (senders have far less under way): it is taken for a new connection under the same
/// number.
class PsnWindow {
 public:
  static constexpr std::uint32_t size = 1U << 16U;

  /// True when this PSN (24 bits) is seen for the first time.
  bool first_time(std::uint32_t psn);

 private:
  void forget(std::uint32_t first, std::uint32_t count);

  std::vector<std::uint64_t> seen_;  // one bit per PSN, modulo the size; empty before the first
  std::uint32_t highest_ = 0;
};

/// Counts the RoCEv2 payload that passes one place.
class RoceCounter {
 public:
  /// More flows than this are counted in left_out alone: a window takes 8 KiB.
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
