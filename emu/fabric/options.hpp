#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/fabric/random.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// How one direction of a port treats its frames. The default is a perfect link. Times count from
/// the moment when faults are armed, frames from the first one after it. Every member has an
/// initializer, so that {.loss = {0.01}} is no warning.
struct LinkOptions {
  std::optional<Bandwidth> rate{};  ///< absent: no limit. A frame takes its bytes and 24 more:
                                    ///< preamble, check sequence, gap
  std::optional<Bytes> queue{};     ///< frames that wait for the rate or a pause; more are dropped.
                                    ///< Absent: the sender waits
  Duration delay{};
  Probability loss{};
  Probability duplicate{};  ///< the frame comes twice, one right behind the other
  Probability
      reorder{};  ///< the frame is held back by reorder_by, so that those behind it overtake it
  Duration reorder_by{1e-3};
  Probability corrupt{};  ///< one byte of the payload changes
  Probability mark{};     ///< ECN: packets that can be marked get "congestion experienced"
  std::optional<Duration>
      pause_at{};  ///< from here on, for pause_for, nothing passes; what comes waits
  Duration pause_for{};
  std::optional<Duration> down_at{};          ///< frames from here on are lost
  std::optional<std::uint64_t> down_after{};  ///< so are those after this many
  std::optional<Duration> down_for{};  ///< up again after this time, with down_after from the first
                                       ///< frame lost; absent: see next
  std::optional<std::uint64_t>
      down_frames{};  ///< up again after this many lost frames; both absent: never
  /// Chances and frame counts see RoCEv2 frames alone; ARP and the like pass. Rate, delay, pause
  /// and a link that is down hold for all.
  bool roce_only = false;

  bool operator==(const LinkOptions&) const = default;
};

/// A place for one NIC. Exactly one of path and fd is given.
struct PortOptions {
  std::string name;  ///< HOST/NIC; the links are NAME.tx and NAME.rx, and their random numbers hang
                     ///< on these names
  std::string
      path;  ///< the unix stream socket to listen on; it must not exist, and is removed at the end
  int fd = -1;     ///< a connected stream socket, which the fabric then owns
  LinkOptions tx;  ///< what the NIC sends
  LinkOptions rx;  ///< what the NIC receives

  bool operator==(const PortOptions&) const = default;
};

/// Where the capture file takes its frames.
enum class CapturePoint {
  sent,       ///< as NICs send them, each once, before any fault
  delivered,  ///< as NICs get them: lost ones are missing, flooded ones come once a port
};

struct FabricOptions {
  std::vector<PortOptions> ports;
  Seed seed;
  bool armed = true;  ///< false: links are perfect until arm()
  /// What may be under way from one port. While it is more, the port is not read, so that its NIC
  /// waits.
  Bytes buffer{std::uint64_t{4} << 20U};
  /// A NIC that takes nothing for so long (a guest that stopped) loses its frames, so that others
  /// need not wait for it.
  Duration stall_after{2};
  std::optional<std::string> pcap;  ///< a capture file to write
  CapturePoint capture = CapturePoint::sent;

  bool operator==(const FabricOptions&) const = default;
};

}  // namespace gdr::fabric
