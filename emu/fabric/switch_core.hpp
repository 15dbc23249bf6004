#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "emu/fabric/link.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// A frame in the switch. `hold` lives as long as any copy of the frame.
struct Parcel {
  FramePtr frame;
  std::shared_ptr<const void> hold;
};

/// The switch without its sockets: links, address learning, flooding, and the frames in flight,
/// ordered by time. It uses no clock. A frame goes through its port's tx link, then through the rx
/// link of each destination port, and never back to its own port; with a single switch there are no
/// loops.
class SwitchCore {
 public:
  /// The limit of learned addresses; frames for other addresses are flooded.
  static constexpr std::size_t max_addresses = 4096;

  explicit SwitchCore(const FabricOptions& options);

  /// Activates the faults and starts their times. Has no effect the second time.
  void arm(Duration now);

  /// Changes faults and seed as if armed now: frame counts and times start again. Takes the links
  /// of `ports`, which must match the options. Counters continue, and frames in flight keep their
  /// times.
  void set_faults(const std::vector<PortOptions>& ports, Seed seed, Duration now);

  void connect(std::size_t port);
  /// Forgets the port's addresses and drops the frames in flight to it.
  void disconnect(std::size_t port);

  /// Takes a frame that the NIC of a port sent. Times must not decrease.
  void receive(std::size_t port, const Parcel& parcel, Duration now);

  /// The time of the next event.
  [[nodiscard]] std::optional<Duration> next_due() const;

  /// Delivers a frame to the NIC of a port; false if it cannot, which counts as stalled.
  using Output = std::function<bool(std::size_t port, const Parcel& parcel)>;
  /// Delivers, in order, everything due until `now`.
  void advance(Duration now, const Output& output);

  /// Reports that a frame which Output accepted did not reach the NIC.
  void not_delivered(std::size_t port, Bytes frame, std::uint64_t Drops::*cause);

  /// Lacks the counters that only the sockets know.
  [[nodiscard]] PortCounters counters(std::size_t port) const;

 private:
  struct Port {
    std::string name;
    Link tx;
    Link rx;
    RoceCounter roce;
    TcpCounter tcp;
    bool connected = false;
  };
  struct Event {
    Duration due;
    std::uint64_t order = 0;  // keeps the order of arrival among equal times
    std::size_t port = 0;
    bool to_nic = false;  // true: at the end of an rx link; false: of a tx link
    Parcel parcel;
  };
  static bool later(const Event& a, const Event& b);

  void through(std::size_t port, bool to_nic, const Parcel& parcel, Duration now);
  void forward(std::size_t port, const Parcel& parcel, Duration now);
  void hand_over(const Event& event, const Output& output);

  std::vector<Port> ports_;
  std::optional<Duration> armed_at_;
  std::map<MacAddress, std::size_t> addresses_;
  std::vector<Event> events_;  // a heap, the next one in front
  std::uint64_t order_ = 0;
};

}  // namespace gdr::fabric
