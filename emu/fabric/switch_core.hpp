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

/// A frame on its way through the switch. `hold` lives as long as the frame is anywhere in it.
struct Parcel {
  FramePtr frame;
  std::shared_ptr<const void> hold;
};

/// The switch without its sockets: links, address learning, flooding, and what is under way,
/// ordered by time. It knows no clock. A frame goes through its port's tx link, then through the rx
/// link of each port that it is for, and never back to its own port: one switch, so no loops.
class SwitchCore {
 public:
  /// More addresses than this are not learned; frames for the others are flooded.
  static constexpr std::size_t max_addresses = 4096;

  explicit SwitchCore(const FabricOptions& options);

  /// Faults hold, and their times count, from now on. Does nothing the second time.
  void arm(Duration now);

  /// Other faults and another seed from now on, as if armed now: frames and times count anew.
  /// `ports` are those of the options, of which the links are taken. Counters go on, and what is
  /// under way keeps its time.
  void set_faults(const std::vector<PortOptions>& ports, Seed seed, Duration now);

  void connect(std::size_t port);
  /// Forgets the port's addresses; what is under way to it is dropped.
  void disconnect(std::size_t port);

  /// The NIC of a port sent a frame. Times never go back.
  void receive(std::size_t port, const Parcel& parcel, Duration now);

  /// When the next frame is due somewhere.
  [[nodiscard]] std::optional<Duration> next_due() const;

  /// Takes a frame for the NIC of a port; false: it cannot (counted as stalled).
  using Output = std::function<bool(std::size_t port, const Parcel& parcel)>;
  /// Gives out, in order, what is due until `now`.
  void advance(Duration now, const Output& output);

  /// A frame that Output took did not reach the NIC after all.
  void not_delivered(std::size_t port, Bytes frame, std::uint64_t Drops::*cause);

  /// Without what only the sockets know.
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
    std::uint64_t order = 0;  // keeps frames that are due at once in the order in which they came
    std::size_t port = 0;
    bool to_nic = false;  // at the end of an rx link; otherwise of a tx link
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
