#include "emu/agreement/wire_observer.hpp"

#include <span>

namespace gdr::agreement {
namespace {

// Operations of RoCE: the low five bits of an opcode, whatever the service.
constexpr std::uint8_t first_write = 0x06;
constexpr std::uint8_t last_write = 0x0b;

void add(const fabric::RoceCounter& counter, Bytes& once, Bytes& again) {
  for (const fabric::RoceFlow& flow : counter.flows()) {
    once = once + flow.payload;
    again = again + flow.repeated_payload;
  }
}

}  // namespace

WireBytes WireObserver::Direction::bytes() const {
  WireBytes bytes;
  add(writes, bytes.written, bytes.written_again);
  add(sends, bytes.sent, bytes.sent_again);
  add(reads, bytes.read, bytes.read_again);
  for (const auto& [key, stream] : streams) {
    bytes.stream = bytes.stream + stream.data();
    bytes.stream_control = bytes.stream_control + stream.control();
  }
  return bytes;
}

void WireObserver::take(const std::string& port, bool delivered, fabric::FrameView frame) {
  const std::lock_guard lock(mutex_);
  Direction& direction = (delivered ? delivered_ : sent_)[port];
  if (const auto packet = fabric::parse_roce(frame)) {
    const std::uint8_t operation = packet->opcode & 0x1fU;
    const bool write = operation >= first_write && operation <= last_write;
    (packet->response ? direction.reads : write ? direction.writes : direction.sends).count(frame);
  } else if (const auto segment = fabric::parse_tcp(frame)) {
    direction.streams[segment->key].take(segment->sequence, segment->begins,
                                         std::as_bytes(segment->payload));
  }
}

WireObserver::Ports WireObserver::ports() const {
  const std::lock_guard lock(mutex_);
  Ports ports;
  for (const auto& [name, direction] : sent_) ports[name].sent = direction.bytes();
  for (const auto& [name, direction] : delivered_) ports[name].delivered = direction.bytes();
  return ports;
}

}  // namespace gdr::agreement
