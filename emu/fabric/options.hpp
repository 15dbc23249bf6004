#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "emu/fabric/random.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// How one direction of a port treats its frames. The default is a perfect link. Times and frame
/// counts start when faults are armed. Every member has an initializer, so that {.loss = {0.01}}
/// causes no warning.
struct LinkOptions {
  std::optional<Bandwidth> rate{};  ///< absent: no limit. Each frame takes 24 bytes more than its
                                    ///< size: preamble, check sequence, gap
  std::optional<Bytes> queue{};     ///< limit of the frames that wait for the rate or a pause; the
                                    ///< excess is dropped. Absent: the sender waits
  Duration delay{};
  Probability loss{};
  Probability duplicate{};  ///< the frame is sent twice in succession
  Probability reorder{};  ///< the frame is delayed by reorder_by, so that later frames overtake it
  Duration reorder_by{1e-3};
  Probability corrupt{};               ///< one byte of the payload changes
  Probability mark{};                  ///< ECN-capable packets get "congestion experienced"
  std::optional<Duration> pause_at{};  ///< from this time on, for pause_for, frames wait
  Duration pause_for{};
  std::optional<Duration> down_at{};          ///< frames are lost from this time on
  std::optional<std::uint64_t> down_after{};  ///< frames are lost after this many
  std::optional<Duration>
      down_for{};  ///< outage in time; with down_after it starts at the first lost frame
  std::optional<std::uint64_t>
      down_frames{};  ///< outage in lost frames; both absent: it never ends
  /// Random choices and frame counts apply only to RoCEv2 frames, not to ARP and the like. Rate,
  /// delay, pause and outages apply to all frames.
  bool roce_only = false;

  bool operator==(const LinkOptions&) const = default;
};

/// A port for one NIC. Exactly one of path and fd must be given.
struct PortOptions {
  std::string
      name;  ///< HOST/NIC; the links are NAME.tx and NAME.rx, which seed their random numbers
  std::string
      path;     ///< the unix stream socket to listen on; must not exist, and is removed at the end
  int fd = -1;  ///< a connected stream socket, which the fabric then owns
  LinkOptions tx;  ///< what the NIC sends
  LinkOptions rx;  ///< what the NIC receives

  bool operator==(const PortOptions&) const = default;
};

/// The point at which frames are captured.
enum class CapturePoint {
  sent,       ///< as NICs send them: each once, before any fault
  delivered,  ///< as NICs receive them: without lost frames, flooded ones once per port
};

struct FabricOptions {
  std::vector<PortOptions> ports;
  Seed seed;
  bool armed = true;  ///< false: links are perfect until arm()
  /// Limit of the frames in flight from one port. Above it the fabric does not read the port, and
  /// its NIC waits.
  Bytes buffer{std::uint64_t{4} << 20U};
  /// A NIC that does not read for this long (a stopped guest) loses its frames, so that others need
  /// not wait.
  Duration stall_after{2};
  std::optional<std::string> pcap;  ///< a capture file to write
  CapturePoint capture = CapturePoint::sent;

  bool operator==(const FabricOptions&) const = default;
};

}  // namespace gdr::fabric
