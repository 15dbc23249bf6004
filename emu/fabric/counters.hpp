#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "emu/fabric/roce.hpp"
#include "emu/fabric/tcp.hpp"
#include "src/common/json.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

struct Traffic {
  std::uint64_t frames = 0;
  Bytes bytes;  ///< of Ethernet frames, without preamble and check sequence
  void add(Bytes frame) {
    ++frames;
    bytes = bytes + frame;
  }
  bool operator==(const Traffic&) const = default;
};

/// Frames that ended here, by cause.
struct Drops {
  std::uint64_t loss = 0;      ///< by chance
  std::uint64_t down = 0;      ///< the link was down
  std::uint64_t queue = 0;     ///< the queue in front of a rate was full
  std::uint64_t runt = 0;      ///< tx: shorter than an Ethernet header
  std::uint64_t filtered = 0;  ///< tx: for nobody else (the receiver is on the same port, addresses
                               ///< that no bridge passes on)
  std::uint64_t unconnected = 0;  ///< rx: no NIC is there any more
  std::uint64_t stalled = 0;      ///< rx: the NIC takes nothing
  [[nodiscard]] std::uint64_t total() const {
    return loss + down + queue + runt + filtered + unconnected + stalled;
  }
  bool operator==(const Drops&) const = default;
};

/// One direction of a port. arrived + duplicated = passed + dropped + what is still under way.
struct DirectionCounters {
  Traffic arrived;  ///< tx: from the NIC. rx: for it
  Traffic passed;   ///< what left the link. rx: what was put on the NIC's socket
  Drops dropped;
  std::uint64_t duplicated = 0;
  std::uint64_t reordered = 0;  ///< overtaken by a later frame
  std::uint64_t corrupted = 0;
  std::uint64_t marked = 0;
  bool operator==(const DirectionCounters&) const = default;
};

struct PortCounters {
  std::string name;
  bool connected = false;
  std::uint64_t connections = 0;
  std::uint64_t refused = 0;  ///< connections while another one was there
  std::uint64_t bad_streams =
      0;  ///< connections closed for a frame length that cannot be, or ended within a frame
  DirectionCounters tx;
  DirectionCounters rx;
  std::vector<RoceFlow> roce;  ///< what the NIC sent, before any fault
  std::uint64_t roce_left_out = 0;
  std::vector<TcpFlow> tcp;  ///< the same
  std::uint64_t tcp_left_out = 0;
  bool operator==(const PortCounters&) const = default;
};

struct FabricCounters {
  std::vector<PortCounters> ports;
  std::string pcap_error;  ///< why the capture file ends early; empty: it does not
  bool operator==(const FabricCounters&) const = default;
};

/// {"ports": [{"name": ..., "tx": {"frames": ..., "dropped": {...}, ...}, "rx": ..., "roce":
/// [...]}]}
json::Value to_json(const FabricCounters& counters);

}  // namespace gdr::fabric
