#include "src/transport/lanes/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "src/common/error.hpp"

namespace gdr::transport {
namespace {

constexpr std::uint32_t frame_magic = 0x31524447;  // "GDR1"
constexpr std::size_t longest_text = 400;          // of a greeting
constexpr std::size_t longest_frame_text = 200;

class Writer {
 public:
  template <typename T>
  void number(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
  void text(const std::string& value) {
    const std::size_t length = std::min(value.size(), longest_text);
    number(static_cast<std::uint16_t>(length));
    for (std::size_t i = 0; i < length; ++i) bytes_.push_back(static_cast<std::byte>(value[i]));
  }
  void gid(const Gid& value) {
    for (const std::uint8_t byte : value) bytes_.push_back(static_cast<std::byte>(byte));
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

/// Reads fields in order; beyond the end they are 0 and ok() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <typename T>
  T number() {
    std::uint64_t value = 0;
    if (!has(sizeof(T))) return 0;
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value |= static_cast<std::uint64_t>(bytes_[i]) << (8 * i);
    bytes_ = bytes_.subspan(sizeof(T));
    return static_cast<T>(value);
  }
  std::string text() {
    const auto length = number<std::uint16_t>();
    if (length > longest_text) ok_ = false;
    if (!has(length)) return "";
    std::string value(length, '\0');
    std::memcpy(value.data(), bytes_.data(), length);
    bytes_ = bytes_.subspan(length);
    return printable(value, longest_text);
  }
  Gid gid() {
    Gid value{};
    if (!has(value.size())) return value;
    std::memcpy(value.data(), bytes_.data(), value.size());
    bytes_ = bytes_.subspan(value.size());
    return value;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool at_end() const { return bytes_.empty(); }

 private:
  bool has(std::size_t size) {
    if (bytes_.size() < size) ok_ = false;
    return ok_;
  }
  std::span<const std::byte> bytes_;
  bool ok_ = true;
};

}  // namespace

Status protocol_error(const std::string& what) {
  return {Cause::protocol, "the peer broke the protocol: " + what};
}

void put_frame(std::span<std::byte, frame_header> to, const Frame& frame) {
  Writer writer;
  writer.number(frame_magic);
  writer.number(static_cast<std::uint8_t>(frame.type));
  writer.number(frame.flags);
  writer.number(frame.credits);
  writer.number(frame.payload);
  writer.number(frame.slots);
  writer.number(frame.slot);
  for (const std::uint64_t value :
       {frame.operation, frame.address, frame.total, frame.offset, frame.value, frame.extra})
    writer.number(value);
  const auto bytes = writer.take();
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

Result<Frame> parse_frame(std::span<const std::byte, frame_header> from,
                          std::size_t largest_payload) {
  Reader reader(from);
  if (reader.number<std::uint32_t>() != frame_magic) return protocol_error("no frame");
  Frame frame;
  const auto type = reader.number<std::uint8_t>();
  if (type < static_cast<std::uint8_t>(FrameType::ready) ||
      type > static_cast<std::uint8_t>(FrameType::goodbye))
    return protocol_error(fmt::format("a frame of type {}", type));
  frame.type = static_cast<FrameType>(type);
  frame.flags = reader.number<std::uint8_t>();
  frame.credits = reader.number<std::uint16_t>();
  frame.payload = reader.number<std::uint32_t>();
  frame.slots = reader.number<std::uint16_t>();
  frame.slot = reader.number<std::uint16_t>();
  for (std::uint64_t* value :
       {&frame.operation, &frame.address, &frame.total, &frame.offset, &frame.value, &frame.extra})
    *value = reader.number<std::uint64_t>();
  if (frame.payload > largest_payload)
    return protocol_error(fmt::format("a frame of {} bytes", frame.payload));
  const bool carries = carries_data(frame.type);
  if (!carries && frame.payload > largest_control)
    return protocol_error(fmt::format("a frame of {} bytes", frame.payload));
  if (carries && (frame.offset > frame.total || frame.payload > frame.total - frame.offset))
    return protocol_error("bytes behind the end of an operation");
  if (frame.address + frame.total < frame.address)
    return protocol_error("a range that wraps around");
  return frame;
}

std::vector<std::byte> put_text(const std::string& text) {
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + std::min(text.size(), longest_frame_text)};
}

std::string parse_text(std::span<const std::byte> from) {
  return printable({reinterpret_cast<const char*>(from.data()),
                    std::min<std::size_t>(from.size(), longest_frame_text)},
                   longest_frame_text);
}

Cause parse_cause(std::uint64_t value) {
  return value > static_cast<std::uint64_t>(Cause::ok) &&
                 value <= static_cast<std::uint64_t>(Cause::cancelled)
             ? static_cast<Cause>(value)
             : Cause::peer_failed;
}

std::vector<std::byte> put_keys(std::span<const std::uint32_t> keys) {
  Writer writer;
  for (const std::uint32_t key : keys) writer.number(key);
  return writer.take();
}

Result<std::vector<std::uint32_t>> parse_keys(std::span<const std::byte> from) {
  if (from.size() % 4 != 0 || from.size() / 4 > max_lanes)
    return protocol_error(fmt::format("{} bytes of keys", from.size()));
  Reader reader(from);
  std::vector<std::uint32_t> keys(from.size() / 4);
  for (std::uint32_t& key : keys) key = reader.number<std::uint32_t>();
  return keys;
}

std::vector<std::byte> put_hello(const Hello& hello) {
  Writer body;
  const PathOffer& offer = hello.offer;
  body.number(static_cast<std::uint8_t>(offer.choice.path));
  body.number(static_cast<std::uint8_t>(offer.best));
  body.number(static_cast<std::uint8_t>(offer.wanted ? static_cast<int>(*offer.wanted) + 1 : 0));
  for (const std::uint32_t value : {hello.chunk, hello.depth, hello.reads_in_flight})
    body.number(value);
  for (const std::string* text :
       {&offer.choice.reason, &offer.not_better, &hello.memory, &hello.error})
    body.text(*text);
  body.number(static_cast<std::uint16_t>(hello.lanes.size()));
  for (const LaneOffer& lane : hello.lanes) {
    body.number(lane.queue_pair);
    body.number(lane.psn);
    body.gid(lane.gid);
    body.number(lane.lid);
    body.number(lane.mtu);
    body.number(lane.slots_address);
    body.number(lane.slots_key);
  }
  const auto bytes = body.take();
  Writer message;
  message.number(frame_magic);
  message.number(protocol_version);
  message.number(static_cast<std::uint64_t>(bytes.size()));
  auto all = message.take();
  all.insert(all.end(), bytes.begin(), bytes.end());
  return all;
}

Result<std::size_t> parse_hello_header(std::span<const std::byte, hello_header> from) {
  Reader reader(from);
  if (reader.number<std::uint32_t>() != frame_magic)
    return Status(Cause::protocol, "the peer does not speak this protocol");
  const auto version = reader.number<std::uint32_t>();
  if (version != protocol_version)
    return Status(Cause::protocol,
                  fmt::format("the peer speaks version {} of the protocol, this is {}", version,
                              protocol_version));
  const auto size = reader.number<std::uint64_t>();
  if (size > largest_hello) return protocol_error(fmt::format("a greeting of {} bytes", size));
  return static_cast<std::size_t>(size);
}

Result<Hello> parse_hello(std::span<const std::byte> body) {
  Reader reader(body);
  Hello hello;
  const auto path = reader.number<std::uint8_t>();
  const auto best = reader.number<std::uint8_t>();
  const auto wanted = reader.number<std::uint8_t>();
  if (path > 2 || best > 2 || wanted > 3) return protocol_error("an unknown path");
  PathOffer& offer = hello.offer;
  offer.choice.path = static_cast<TransportPath>(path);
  offer.best = static_cast<TransportPath>(best);
  if (wanted > 0) offer.wanted = static_cast<TransportPath>(wanted - 1);
  for (std::uint32_t* value : {&hello.chunk, &hello.depth, &hello.reads_in_flight})
    *value = reader.number<std::uint32_t>();
  for (std::string* text : {&offer.choice.reason, &offer.not_better, &hello.memory, &hello.error})
    *text = reader.text();
  const auto lanes = reader.number<std::uint16_t>();
  if (lanes > max_lanes) return protocol_error(fmt::format("{} queue pairs", lanes));
  for (unsigned i = 0; i < lanes && reader.ok(); ++i) {
    LaneOffer lane;
    lane.queue_pair = reader.number<std::uint32_t>();
    lane.psn = reader.number<std::uint32_t>();
    lane.gid = reader.gid();
    lane.lid = reader.number<std::uint16_t>();
    lane.mtu = reader.number<std::uint32_t>();
    lane.slots_address = reader.number<std::uint64_t>();
    lane.slots_key = reader.number<std::uint32_t>();
    hello.lanes.push_back(lane);
  }
  if (!reader.ok() || !reader.at_end()) return protocol_error("a greeting of the wrong length");
  if (hello.error.empty() &&
      (hello.chunk < 256 || hello.chunk > (16U << 20U) || hello.depth < 2 || hello.depth > 4096 ||
       hello.reads_in_flight < 1 || hello.reads_in_flight > 255))
    return protocol_error(fmt::format("{} bytes per frame, {} frames, {} reads", hello.chunk,
                                      hello.depth, hello.reads_in_flight));
  return hello;
}

}  // namespace gdr::transport
