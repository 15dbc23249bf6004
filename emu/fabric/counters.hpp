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
  Bytes bytes;  ///< Ethernet frames without preamble and check sequence
  void add(Bytes frame) {
    ++frames;
    bytes = bytes + frame;
  }
  bool operator==(const Traffic&) const = default;
};

/// Dropped frames by cause.
struct Drops {
  std::uint64_t loss = 0;         ///< by chance
  std::uint64_t down = 0;         ///< the link was down
  std::uint64_t queue = 0;        ///< the queue in front of a rate was full
  std::uint64_t runt = 0;         ///< tx: shorter than an Ethernet header
  std::uint64_t filtered = 0;     ///< tx: for no other port (the receiver is on the same port, or
                                  ///< bridges must not forward the address)
  std::uint64_t unconnected = 0;  ///< rx: the NIC has disconnected
  std::uint64_t stalled = 0;      ///< rx: the NIC does not read
  [[nodiscard]] std::uint64_t total() const {
    return loss + down + queue + runt + filtered + unconnected + stalled;
  }
  bool operator==(const Drops&) const = default;
};

/// One direction of a port. arrived + duplicated = passed + dropped + frames still in flight.
struct DirectionCounters {
  Traffic arrived;  ///< tx: from the NIC. rx: for the NIC
  Traffic passed;   ///< frames that left the link. rx: frames written to the NIC's socket
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
  std::uint64_t refused = 0;  ///< connections refused because the port had one
  std::uint64_t bad_streams =
      0;  ///< connections with an invalid frame length, or that ended within a frame
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
  std::string pcap_error;  ///< why the capture file is incomplete; empty: it is complete
  bool operator==(const FabricCounters&) const = default;
};

/// {"ports": [{"name": ..., "tx": {"frames": ..., "dropped": {...}, ...}, "rx": ..., "roce":
/// [...]}]}
json::Value to_json(const FabricCounters& counters);

}  // namespace gdr::fabric
