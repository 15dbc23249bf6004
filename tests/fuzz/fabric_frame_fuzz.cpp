#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "emu/fabric/fault_spec.hpp"
#include "emu/fabric/framing.hpp"
#include "emu/fabric/roce.hpp"
#include "emu/fabric/switch_core.hpp"
#include "src/common/check.hpp"
#include "src/common/error.hpp"

namespace {

using namespace gdr::fabric;

FabricOptions options() {
  FabricOptions made;
  for (const char* name : {"h0/nic0", "h0/nic1", "h1/nic0"})
    made.ports.push_back({name, "", -1, {}, {}});
  return made;
}

/// A fault text must be accepted, or refused in one line.
void read_faults(std::string_view text, std::vector<PortOptions>& ports) {
  try {
    apply_faults(text, ports);
  } catch (const gdr::InputError& error) {
    gdr::check(std::string_view(error.what()).find('\n') == std::string_view::npos,
               "an error of more than one line");
  }
}

void look_at(const Frame& frame) {
  if (const auto ip = find_ip(frame))
    gdr::check(ip->transport <= ip->end && ip->end <= frame.size(), "a packet beyond its frame");
  if (const auto roce = parse_roce(frame))
    gdr::check(roce->payload.count < frame.size(), "more payload than frame");
  Frame marked = frame;
  if (mark_congestion(marked)) gdr::check(!mark_congestion(marked), "marked twice");
  Frame corrupted = frame;
  gdr::check(corrupt_payload(corrupted, frame.size()) == (corrupted != frame),
             "corruption that changes nothing");
}

/// Sends the whole stream to port 0 of a switch; every frame must be accounted for.
void carry(FrameView stream, const FabricOptions& with) {
  SwitchCore core(with);
  for (std::size_t port = 0; port < with.ports.size(); ++port) core.connect(port);
  FrameDecoder decoder;
  decoder.feed(stream);
  gdr::Duration now;
  const auto drop = [](std::size_t, const Parcel&) { return true; };
  while (auto frame = decoder.next()) {
    look_at(*frame);
    core.receive(0, {std::make_shared<const Frame>(std::move(*frame)), nullptr}, now);
    now += gdr::Duration{1e-6};
    core.advance(now, drop);
  }
  while (const auto due = core.next_due()) core.advance(*due, drop);
  const DirectionCounters tx = core.counters(0).tx;
  gdr::check(tx.arrived.frames + tx.duplicated == tx.passed.frames + tx.dropped.total(),
             "a frame is lost without a cause");
}

}  // namespace

/// The first line is a fault text; the rest is a stream of frames as QEMU writes it.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto line = std::min(text.find('\n'), size);
  FabricOptions with = options();
  read_faults(text.substr(0, line), with.ports);
  look_at(Frame(data, data + size));
  carry(FrameView(data, size).subspan(std::min(line + 1, size)), with);
  return 0;
}
