#pragma once

#include <map>
#include <optional>
#include <span>

#include "src/transport/connection/control.hpp"
#include "src/transport/connection/operation.hpp"
#include "src/transport/connection/results.hpp"
#include "src/transport/engine/progress_engine.hpp"

namespace gdr::transport {

/// The rkeys of a registered range, one per queue pair of the connection.
std::vector<std::uint32_t> remote_keys(const RegisteredRange& range, const LaneSet& lanes);
/// Parses the peer's keys from a frame's payload. Cause::protocol when they are invalid.
Result<Keys> take_keys(std::span<const std::byte> payload);

/// The ranges of memory that this side shares with the peer, and those that the peer shares. A
/// range has a tag, which the owner chooses.
class SharedRanges {
 public:
  SharedRanges(ProgressEngine& engine, LaneSet& lanes, Control& control)
      : engine_(engine), lanes_(lanes), control_(control) {}
  SharedRanges(const SharedRanges&) = delete;
  SharedRanges& operator=(const SharedRanges&) = delete;

  /// Registers the range when `path` is gdr, and announces it to the peer.
  Status share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size, TransportPath path);
  Status unshare(std::uint64_t tag);
  void unshare_allocation(std::uint64_t allocation);
  /// Whether the peer may use all of it.
  [[nodiscard]] bool cover(std::uint64_t address, std::uint64_t size) const;
  /// Makes everything that the peer may write visible to the device.
  Status flush() const;

  struct PeerRange {
    RemoteRange range;
    Keys keys;
  };
  /// Null when the peer shares no such range.
  [[nodiscard]] const PeerRange* of_peer(std::uint64_t tag) const;
  /// Frames of the peer. An error status ends the connection.
  Status take_share(const Frame& frame, std::span<const std::byte> payload);
  void take_unshare(const Frame& frame) { of_peer_.erase(frame.value); }

  void clear() {
    own_.clear();
    of_peer_.clear();
  }

 private:
  struct Own {
    memory::DevicePointer pointer;
    Bytes size;
    std::uint64_t allocation = 0;
    std::shared_ptr<const RegisteredRange> registered;
  };
  ProgressEngine& engine_;
  LaneSet& lanes_;
  Control& control_;
  std::map<std::uint64_t, Own> own_;
  std::map<std::uint64_t, PeerRange> of_peer_;
};

}  // namespace gdr::transport
