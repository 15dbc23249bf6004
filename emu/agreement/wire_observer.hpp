#pragma once

#include <map>
#include <mutex>
#include <string>

#include "emu/agreement/observation.hpp"
#include "emu/agreement/stream_reader.hpp"
#include "emu/fabric/frame.hpp"
#include "emu/fabric/roce.hpp"
#include "emu/fabric/tcp.hpp"

namespace gdr::agreement {

/// Adds up, by port and direction, what frames of the fabric carry: RoCE payload by opcode, TCP
/// payload by the transport's frames. Repeated bytes count once. One thread may query while another
/// adds frames.
class WireObserver {
 public:
  struct Port {
    WireBytes sent;
    WireBytes delivered;
    bool operator==(const Port&) const = default;
  };
  using Ports = std::map<std::string, Port>;

  void take(const std::string& port, bool delivered, fabric::FrameView frame);
  /// Totals since the beginning; ports without frames are omitted.
  [[nodiscard]] Ports ports() const;

 private:
  struct Direction {
    fabric::RoceCounter writes, sends, reads;
    std::map<fabric::TcpFlowKey, StreamFollower> streams;
    [[nodiscard]] WireBytes bytes() const;
  };
  mutable std::mutex mutex_;
  std::map<std::string, Direction> sent_;
  std::map<std::string, Direction> delivered_;
};

}  // namespace gdr::agreement
