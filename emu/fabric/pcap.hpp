#pragma once

#include <cstdint>
#include <string>

#include "emu/fabric/frame.hpp"
#include "src/common/unique_fd.hpp"
#include "src/common/units.hpp"

namespace gdr::fabric {

/// Nanoseconds since 1970. Not a Duration, because a double of this size resolves only a quarter of
/// a microsecond.
struct WallClock {
  std::uint64_t ns = 0;
};
WallClock wall_clock_now();

/// Writes a classic pcap file (nanoseconds, Ethernet). Each frame is written at once, so that
/// tcpdump and Wireshark can follow the file.
class PcapWriter {
 public:
  /// `start` is the wall-clock time of time 0. Throws InputError when the file cannot be created.
  PcapWriter(const std::string& path, WallClock start);

  /// After an error (a full disk) nothing more is written; the file ends with its last complete
  /// frame.
  void write(FrameView frame, Duration since_start);
  /// Path and reason of an error; empty if there was none.
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
