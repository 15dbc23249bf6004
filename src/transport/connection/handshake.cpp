#include "src/transport/connection/handshake.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace gdr::transport {

Handshake::Handshake(ProgressEngine& engine, std::unique_ptr<ByteStream> stream, bool initiator)
    : engine_(engine),
      stream_(std::move(stream)),
      initiator_(initiator),
      chunk_(engine.options.chunk) {}

Status Handshake::begin() {
  if (!initiator_) return {};
  const Status made = make_lanes(engine_.nics.size() * engine_.options.queue_pairs);
  if (!made.ok()) return reject(made);
  hello_out_ = put_hello(own_hello());
  return {};
}

/// Lane i uses NIC i modulo their number, so that the first lanes already use every NIC.
Status Handshake::make_lanes(std::size_t count) {
  if (engine_.choice.offer.best == TransportPath::tcp) return {};
  count = std::min(count, max_lanes);
  for (std::size_t i = 0; i < count; ++i) {
    const auto index = static_cast<unsigned>(i % engine_.nics.size());
    const Nic& nic = engine_.nics[index];
    auto lane = RcLane::make(*nic.device, engine_.options, chunk_, index);
    if (!lane.ok()) return lane.status();
    LaneOffer offer;
    offer.queue_pair = lane.value()->number();
    offer.psn = (offer.queue_pair * 2654435761U) & 0xffffffU;
    offer.gid = nic.gid.gid;
    offer.lid = nic.port.lid;
    offer.mtu = static_cast<std::uint32_t>(nic.port.mtu.count);
    std::tie(offer.slots_address, offer.slots_key) = lane.value()->slots();
    offers_.push_back(offer);
    lanes_.push_back(std::move(lane.value()));
  }
  return {};
}

Hello Handshake::own_hello() const {
  Hello hello;
  hello.offer = engine_.choice.offer;
  hello.chunk = static_cast<std::uint32_t>(chunk_.count);
  hello.depth = engine_.options.depth;
  hello.memory = engine_.memory->name();
  hello.lanes = offers_;
  hello.reads_in_flight = 16;
  for (const Nic& nic : engine_.nics)
    hello.reads_in_flight =
        std::min(hello.reads_in_flight, std::max(1U, nic.device->limits().reads_in_flight));
  return hello;
}

Status Handshake::reject(const Status& reason) {
  Hello hello;
  hello.error = fmt::format("{}: {}", to_string(reason.cause()), reason.text());
  const auto bytes = put_hello(hello);
  (void)stream_->write_some(bytes);
  return reason;
}

Status Handshake::write_hello() {
  while (!hello_out_.empty()) {
    const auto count = stream_->write_some(hello_out_);
    if (!count.ok()) return count.status();
    if (count.value() == 0) break;
    hello_out_.erase(hello_out_.begin(),
                     hello_out_.begin() + static_cast<std::ptrdiff_t>(count.value()));
  }
  return {};
}

Result<bool> Handshake::read_hello() {
  std::size_t wanted = hello_header;
  for (;;) {
    if (hello_in_.size() >= hello_header) {
      const auto size = parse_hello_header(
          std::span<const std::byte, hello_header>(hello_in_.data(), hello_header));
      if (!size.ok()) return size.status();
      wanted = hello_header + size.value();
      if (hello_in_.size() == wanted) return true;
    }
    std::vector<std::byte> more(wanted - hello_in_.size());
    const auto count = stream_->read_some(more);
    if (!count.ok()) return count.status();
    if (count.value() == 0) return false;
    hello_in_.insert(hello_in_.end(), more.begin(),
                     more.begin() + static_cast<std::ptrdiff_t>(count.value()));
  }
}

Status Handshake::take_hello() {
  const auto hello = parse_hello(std::span<const std::byte>(hello_in_).subspan(hello_header));
  if (!hello.ok()) return hello.status();
  if (!hello.value().error.empty())
    return {Cause::peer_failed, "the peer refused: " + hello.value().error};
  const Status concluded = conclude(hello.value());
  // The initiator has sent everything already.
  return concluded.ok() || initiator_ ? concluded : reject(concluded);
}

Result<std::optional<Negotiated>> Handshake::progress() {
  if (Status written = write_hello(); !written.ok()) return written;
  if (!hello_taken_) {
    const auto read = read_hello();
    if (!read.ok()) return read.status();
    if (!read.value()) return std::optional<Negotiated>();
    hello_taken_ = true;
    if (Status taken = take_hello(); !taken.ok()) return taken;
  }
  if (!hello_out_.empty()) return std::optional<Negotiated>();
  return std::optional(Negotiated{path_, chunk_, std::move(lanes_), std::move(stream_)});
}

Status Handshake::conclude(const Hello& peer) {
  const auto together = choose_together(engine_.choice.offer, peer.offer);
  if (!together.ok()) return together.status();
  path_ = together.value();
  chunk_ = std::min(chunk_, Bytes{peer.chunk});
  const std::size_t count = path_.path == TransportPath::tcp ? 0 : peer.lanes.size();
  if (!initiator_ && count > 0) {
    const std::size_t own = engine_.nics.size() * engine_.options.queue_pairs;
    if (Status made = make_lanes(std::min(count, std::max(own, engine_.nics.size()))); !made.ok())
      return made;
  }
  lanes_.resize(std::min(lanes_.size(), count));
  offers_.resize(lanes_.size());
  if (path_.path != TransportPath::tcp && lanes_.empty())
    return {Cause::protocol, "the peer offers no queue pairs"};
  if (Status connected = connect_lanes(peer); !connected.ok()) return connected;
  if (!initiator_) hello_out_ = put_hello(own_hello());
  return {};
}

Status Handshake::connect_lanes(const Hello& peer) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Nic& nic = engine_.nics[lanes_[i]->nic()];
    const LaneOffer& theirs = peer.lanes[i];
    QueuePairRoute route;
    route.peer_queue_pair = theirs.queue_pair;
    route.peer_psn = theirs.psn;
    route.own_psn = offers_[i].psn;
    route.peer_gid = theirs.gid;
    route.peer_lid = theirs.lid;
    route.gid_index = nic.gid.index;
    route.mtu = std::min(nic.port.mtu, Bytes{theirs.mtu});
    route.reads_in_flight = std::min(own_hello().reads_in_flight, peer.reads_in_flight);
    route.timeout = engine_.options.timeout;
    route.retries = engine_.options.retries;
    Status connected = lanes_[i]->connect(route, theirs, peer.depth, Bytes{peer.chunk});
    if (connected.ok()) continue;
    // A GID may have disappeared since it was chosen.
    const auto now = select_gid(nic.name, nic.device->gids(), nic.port.ethernet, nic.gid.index);
    return now.ok() ? connected
                    : Status(connected.cause(), connected.text() + ": " + now.status().text());
  }
  return {};
}

}  // namespace gdr::transport
