#pragma once

#include <cstdint>
#include <string>

#include "emu/fabric/frame.hpp"
#include "src/common/unique_fd.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// Nanoseconds since 1970. Not a Duration: a double of this size only holds quarters of a
/// microsecond.
struct WallClock {
  std::uint64_t ns = 0;
};
WallClock wall_clock_now();

/// Writes a classic pcap file (nanoseconds, Ethernet) that tcpdump and Wireshark read while it
/// grows: each frame is written at once.
class PcapWriter {
 public:
  /// `start` is the wall clock at time 0. Throws InputError when the file cannot be made.
  PcapWriter(const std::string& path, WallClock start);

  /// After the first error (a full disk) nothing more is written; the file ends with its last whole
  /// frame.
  void write(FrameView frame, Duration since_start);
  /// Empty, or path and reason.
  [[nodiscard]] const std::string& error() const { return error_; }

 private:
  void append(FrameView header, FrameView frame);

  std::string path_;
  UniqueFd file_;
  WallClock start_;
  std::uint64_t size_ = 0;
  std::string error_;
};

}  // namespace gdr::fabric
