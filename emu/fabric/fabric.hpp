#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "emu/fabric/counters.hpp"
#include "emu/fabric/frame.hpp"
#include "emu/fabric/options.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// Hears of each frame: as the NIC of a port sent it, before any fault, and as one is put on the
/// socket of the NIC that it is for. Called in the fabric's thread, which waits for it; it must not
/// call the fabric.
enum class TapPoint { sent, delivered };
using FrameTap = std::function<void(const std::string& port, TapPoint point, FrameView frame)>;

/// The Ethernet switch that joins guests: QEMU's `-netdev
/// stream,id=ID,server=off,addr.type=unix,addr.path=PATH` connects to a port. One thread runs it;
/// arm(), set_faults(), wake() and counters() may be called from others. A NIC may leave and come
/// again, but not where its port was given as an open socket.
class Fabric {
 public:
  /// The sockets listen when this returns. Throws InputError on options that cannot be, and removes
  /// the sockets already made. Owns the ports' file descriptors in any case.
  explicit Fabric(const FabricOptions& options, FrameTap tap = {});
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;
  /// Closes all connections and removes the sockets. What is under way is lost.
  ~Fabric();

  /// Carries frames until stop() is true. It is asked after every turn, after wake(), and five
  /// times a second.
  void run_until(const std::function<bool()>& stop);

  /// One turn: waits until something can be done, `at_most` this long, and does it.
  void run_once(Duration at_most);
  /// Readable when run_once() has something to do, for a loop of the caller's.
  [[nodiscard]] int event_fd() const;

  /// With FabricOptions.armed false: faults hold from now on.
  void arm();
  /// Other faults and another seed from now on, as SwitchCore::set_faults does.
  void set_faults(const std::vector<PortOptions>& ports, Seed seed);
  /// Ends a wait of run_once(). May be called in a signal handler.
  void wake() const;

  [[nodiscard]] FabricCounters counters() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace gdr::fabric
