#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "src/transport/policy/path_policy.hpp"
#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {

constexpr std::uint32_t protocol_version = 1;
constexpr std::size_t max_lanes = 64;

/// What a frame is about. Operations are numbered by the side that asked for them.
enum class FrameType : std::uint8_t {
  ready = 1,  ///< the initiator's queue pairs are connected
  credit,     ///< nothing but credits
  share,      ///< value: tag; address, total; payload: one key per lane
  unshare,    ///< value: tag
  put,        ///< bytes of a write: address, total, offset, value: immediate
  get,        ///< read on behalf of the sender: address, total
  reply,      ///< bytes of such a read: total, offset
  message,    ///< a send is waiting: address, total, value: CRC; payload: keys
  clear,      ///< the receiver has room for it
  body,       ///< bytes of a send: total, offset
  atomic,     ///< address, value: operand, extra: swap
  notify,     ///< a write is complete: value: immediate, total, extra: how many lanes notify
  verify,     ///< address, total, value: CRC
  done,       ///< extra: the old value of an atomic; value: Cause, payload: text
  abort,      ///< the sender's connection has failed: value: Cause, payload: text
  goodbye,    ///< the sender closes
};

/// Flags of a frame.
constexpr std::uint8_t flag_immediate = 1;  ///< put, verify: there is an immediate
constexpr std::uint8_t flag_swap = 2;       ///< atomic: compare and swap, not add
constexpr std::uint8_t flag_checked = 4;    ///< message: value holds a CRC

struct Frame {
  FrameType type = FrameType::credit;
  std::uint8_t flags = 0;
  std::uint16_t credits = 0;  ///< receives that the sender of the frame has posted again
  std::uint16_t slots = 0;    ///< bounce buffers of the sender that are free again
  std::uint16_t slot = 0;     ///< of a queue pair: the bounce buffer that holds the payload
  std::uint32_t payload = 0;  ///< bytes behind the header
  std::uint64_t operation = 0;
  std::uint64_t address = 0;
  std::uint64_t total = 0;
  std::uint64_t offset = 0;
  std::uint64_t value = 0;
  std::uint64_t extra = 0;
  bool operator==(const Frame&) const = default;
};
constexpr std::size_t frame_header = 64;
constexpr std::size_t largest_control = 512;  ///< payload of frames that carry no data
constexpr bool carries_data(FrameType type) {
  return type == FrameType::put || type == FrameType::reply || type == FrameType::body;
}

/// Writes the header; little endian on the wire.
void put_frame(std::span<std::byte, frame_header> to, const Frame& frame);
/// Cause::protocol for an invalid header: unknown type or flag, more payload than
/// `largest_payload`, offset beyond total.
Result<Frame> parse_frame(std::span<const std::byte, frame_header> from,
                          std::size_t largest_payload);

/// "the peer broke the protocol: WHAT"
Status protocol_error(const std::string& what);

/// Why an operation or a connection ended: a sentence, of which 200 bytes are kept.
std::vector<std::byte> put_text(const std::string& text);
std::string parse_text(std::span<const std::byte> from);
/// The Cause in Frame::value; peer_failed for an unknown number.
Cause parse_cause(std::uint64_t value);

std::vector<std::byte> put_keys(std::span<const std::uint32_t> keys);
Result<std::vector<std::uint32_t>> parse_keys(std::span<const std::byte> from);

/// How one side describes a queue pair that it offers.
struct LaneOffer {
  std::uint32_t queue_pair = 0;
  std::uint32_t psn = 0;
  Gid gid{};
  std::uint16_t lid = 0;
  std::uint32_t mtu = 1024;
  std::uint64_t slots_address = 0;  ///< of its bounce buffers, which are contiguous
  std::uint32_t slots_key = 0;
  bool operator==(const LaneOffer&) const = default;
};

/// What each side sends first: its greeting. `error` ends the set-up.
struct Hello {
  PathOffer offer;
  std::uint32_t chunk = 0;  ///< payload bytes per frame
  std::uint32_t depth = 0;  ///< frames that a lane can take before one is given back
  std::uint32_t reads_in_flight = 1;
  std::string memory;
  std::string error;
  std::vector<LaneOffer> lanes;
};

constexpr std::size_t hello_header = 16;
constexpr std::size_t largest_hello = 8192;
std::vector<std::byte> put_hello(const Hello& hello);
/// The size of what follows the first 16 bytes. Cause::protocol: not this protocol, another
/// version, more than 8 KiB.
Result<std::size_t> parse_hello_header(std::span<const std::byte, hello_header> from);
Result<Hello> parse_hello(std::span<const std::byte> body);

}  // namespace gdr::transport
