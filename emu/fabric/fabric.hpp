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

/// Observes each frame twice: as its NIC sent it, before any fault, and as it is written to the
/// receiver's socket. The fabric's thread calls it and waits; it must not call the fabric.
enum class TapPoint { sent, delivered };
using FrameTap = std::function<void(const std::string& port, TapPoint point, FrameView frame)>;

/// The Ethernet switch between guests. QEMU's `-netdev
/// stream,id=ID,server=off,addr.type=unix,addr.path=PATH` connects to a port. One thread runs it;
/// other threads may call arm(), set_faults(), wake() and counters(). A NIC may disconnect and
/// reconnect unless its port was given as an open socket.
class Fabric {
 public:
  /// The sockets listen when this returns. Throws InputError on invalid options and removes the
  /// sockets already made. Takes the ports' file descriptors even if it throws.
  explicit Fabric(const FabricOptions& options, FrameTap tap = {});
  Fabric(Fabric&&) noexcept;
  Fabric& operator=(Fabric&&) noexcept;
  /// Closes all connections and removes the sockets. Frames in flight are lost.
  ~Fabric();

  /// Forwards frames until stop() returns true. Calls it after every step, after wake(), and five
  /// times per second.
  void run_until(const std::function<bool()>& stop);

  /// One step: waits for work, but not longer than `at_most`, and does it.
  void run_once(Duration at_most);
  /// For a caller's event loop: readable when run_once() has work.
  [[nodiscard]] int event_fd() const;

  /// Activates the faults if FabricOptions.armed was false.
  void arm();
  /// Changes faults and seed; see SwitchCore::set_faults().
  void set_faults(const std::vector<PortOptions>& ports, Seed seed);
  /// Wakes up run_once(). Safe in a signal handler.
  void wake() const;

  [[nodiscard]] FabricCounters counters() const;

 private:
  class Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace gdr::fabric
