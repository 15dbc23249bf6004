#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "src/common/units.hpp"

namespace gdr::agreement {

/// Reads one direction of a stream of the transport (src/transport/lanes/frame.hpp) as it passes
/// and separates its data from its control: greetings, headers, and frames that carry no data.
/// Where a stream does not follow the protocol, everything from there on counts as data, so that
/// nothing hides in it.
class StreamReader {
 public:
  void take(std::span<const std::byte> bytes);
  [[nodiscard]] Bytes data() const { return data_; }
  /// Includes the bytes of an incomplete header.
  [[nodiscard]] Bytes control() const { return control_ + Bytes{header_.size()}; }

 private:
  enum class Expect { beginning, hello, frame, payload, anything };
  [[nodiscard]] std::size_t wanted() const;
  void header_complete();
  void begin();

  Expect expect_ = Expect::beginning;
  std::vector<std::byte> header_;  // the part received
  Expect next_ = Expect::frame;    // after a payload
  std::uint64_t payload_ = 0;      // bytes still to come
  bool payload_is_data_ = false;
  Bytes data_;
  Bytes control_;
};

/// Puts the segments of one direction of a TCP connection in order and hands each byte on once.
class StreamFollower {
 public:
  /// `sequence` is the segment's; a SYN begins a connection anew under the same ports.
  void take(std::uint32_t sequence, bool begins, std::span<const std::byte> payload);
  [[nodiscard]] Bytes data() const { return earlier_data_ + reader_.data(); }
  [[nodiscard]] Bytes control() const { return earlier_control_ + reader_.control(); }

 private:
  void pass_on(std::span<const std::byte> bytes);

  bool begun_ = false;
  std::uint32_t next_ = 0;      // sequence number of the byte that is to come
  std::uint64_t position_ = 0;  // of that byte in the stream
  std::map<std::uint64_t, std::vector<std::byte>> waiting_;  // behind a gap, by position
  StreamReader reader_;
  Bytes earlier_data_;
  Bytes earlier_control_;
};

}  // namespace gdr::agreement
