#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

/// The faults between and in the NICs of the double. Everything follows from `seed` and the order
/// of calls.
struct DoubleFaults {
  double loss = 0;     ///< share of packets that vanish
  double reorder = 0;  ///< share that is held back by `reorder_by`
  Duration reorder_by{20e-6};
  double corrupt = 0;  ///< share whose ICRC is wrong: the receiving NIC drops them
  double silent_corrupt =
      0;  ///< share of payloads with a changed byte that no CRC of the network sees
  struct Outage {
    std::string device;
    Duration at;
    Duration length;
  };
  std::vector<Outage> outages;  ///< the port is down, with events
  struct Death {
    std::string device;
    Duration at;
  };
  std::vector<Death> deaths;          ///< the NIC falls silent, without an event
  std::vector<Death> lost_addresses;  ///< the IPv4 entry leaves the GID table, and no packet
                                      ///< from or to it passes
  int refuse_memory = 0;              ///< errno of registrations by address; 0: none is refused
  int refuse_dma_buf = 0;  ///< errno of registrations by descriptor, as rdma_rxe's EOPNOTSUPP
  double full = 0;         ///< share of posts that find the queue full
  std::uint64_t seed = 1;
};

struct DoubleOptions {
  Bytes mtu{4096};
  Bytes largest_message{std::uint64_t{1} << 30U};
  Duration latency{2e-6};
  Duration idle_step{10e-6};  ///< the most time that one idle() lets pass
  unsigned queue_depth = 1024;
  DoubleFaults faults;
};

/// What the NIC moved by DMA. Device regions are those whose iova is not their address, and
/// dma-bufs.
struct DmaBytes {
  Bytes host_read;
  Bytes host_written;
  Bytes device_read;
  Bytes device_written;
  bool operator==(const DmaBytes&) const = default;
};

class DoubleFabric;  // double_fabric.hpp

/// A network of NICs inside the process, with simulated time, for any number of threads
/// (deterministic with one).
std::shared_ptr<DoubleFabric> make_double_fabric(const DoubleOptions& options);

/// The NICs `names` of one host on the fabric. A NIC has a RoCEv1 entry at GID index 0, then RoCEv2
/// entries: link-local at 1, its IPv4 `address` at 2 (10.0.HOST.NIC by the order in which they are
/// made).
std::unique_ptr<Verbs> make_double(std::shared_ptr<DoubleFabric> fabric,
                                   const std::vector<std::string>& names);

/// By device name; zeros for an unknown one.
DmaBytes dma_bytes(const DoubleFabric& fabric, const std::string& device);
/// Regions, queue pairs, completion queues and devices that are not released.
std::size_t live_objects(const DoubleFabric& fabric);
Duration now(const DoubleFabric& fabric);
/// Packets that all NICs sent, and how many of them were sent again.
struct PacketCount {
  std::uint64_t sent = 0;
  std::uint64_t again = 0;
};
PacketCount packets(const DoubleFabric& fabric);

}  // namespace gdr::transport
