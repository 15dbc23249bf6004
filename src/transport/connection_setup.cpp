// How a connection is set up: both sides greet, the side that was called answers with as many queue
// pairs as it can.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "src/transport/connection_core.hpp"

namespace gdr::transport {

ConnectionCore::ConnectionCore(Engine& engine, std::unique_ptr<ByteStream> stream, bool initiator)
    : engine_(engine),
      stream_(std::move(stream)),
      initiator_(initiator),
      peer_name_(stream_->peer()),
      setup_deadline_(engine.verbs->now() + engine.options.setup_limit),
      chunk_(engine.options.chunk),
      out_(engine.memory->create_stream()),
      in_(engine.memory->create_stream()) {
  if (!initiator_) return;
  const Status made = make_lanes(engine_.nics.size() * engine_.options.queue_pairs);
  if (made.ok()) {
    hello_out_ = put_hello(own_hello());
  } else {
    reject(made);
  }
}

ConnectionCore::~ConnectionCore() {
  close_now();
  engine_.memory->destroy_stream(out_);
  engine_.memory->destroy_stream(in_);
}

/// Lane i is of NIC i modulo their number, so that the first lanes already use every NIC.
Status ConnectionCore::make_lanes(std::size_t count) {
  if (engine_.choice.offer.best == Path::tcp) return {};
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

Hello ConnectionCore::own_hello() const {
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

/// Tells the peer why this cannot be, as far as it takes that without waiting.
void ConnectionCore::reject(const Status& reason) {
  Hello hello;
  hello.error = fmt::format("{}: {}", to_string(reason.cause()), reason.text());
  const auto bytes = put_hello(hello);
  (void)stream_->write_some(bytes);
  fail(reason, false);
}

void ConnectionCore::progress_setup() {
  while (!hello_out_.empty()) {
    const auto count = stream_->write_some(hello_out_);
    if (!count.ok()) return fail(count.status(), false);
    if (count.value() == 0) break;
    hello_out_.erase(hello_out_.begin(),
                     hello_out_.begin() + static_cast<std::ptrdiff_t>(count.value()));
  }
  if (!hello_read_ && !exchange_hello()) return;
  if (state == State::setting_up && hello_out_.empty()) start();
}

/// Reads the peer's greeting, and not a byte more. True once it was taken.
bool ConnectionCore::exchange_hello() {
  std::size_t wanted = hello_header;
  for (;;) {
    if (hello_in_.size() >= hello_header) {
      const auto size = parse_hello_header(
          std::span<const std::byte, hello_header>(hello_in_.data(), hello_header));
      if (!size.ok()) return fail(size.status(), false), false;
      wanted = hello_header + size.value();
      if (hello_in_.size() == wanted) break;
    }
    std::vector<std::byte> more(wanted - hello_in_.size());
    const auto count = stream_->read_some(more);
    if (!count.ok()) return fail(count.status(), false), false;
    if (count.value() == 0) return false;
    hello_in_.insert(hello_in_.end(), more.begin(),
                     more.begin() + static_cast<std::ptrdiff_t>(count.value()));
  }
  hello_read_ = true;
  const auto hello = parse_hello(std::span<const std::byte>(hello_in_).subspan(hello_header));
  if (!hello.ok()) return fail(hello.status(), false), false;
  if (!hello.value().error.empty())
    return fail({Cause::peer_failed, "the peer refused: " + hello.value().error}, false), false;
  conclude(hello.value());
  return state == State::setting_up;
}

void ConnectionCore::conclude(const Hello& peer) {
  const auto together = choose_together(engine_.choice.offer, peer.offer);
  if (!together.ok())
    return initiator_ ? fail(together.status(), false) : reject(together.status());
  path = together.value();
  chunk_ = std::min(chunk_, Bytes{peer.chunk});
  const std::size_t count = path.path == Path::tcp ? 0 : peer.lanes.size();
  if (!initiator_) {
    const std::size_t own = engine_.nics.size() * engine_.options.queue_pairs;
    if (Status made =
            count == 0 ? Status() : make_lanes(std::min(count, std::max(own, engine_.nics.size())));
        !made.ok())
      return reject(made);
  }
  lanes_.resize(std::min(lanes_.size(), count));
  offers_.resize(lanes_.size());
  if (path.path != Path::tcp && lanes_.empty())
    return reject({Cause::protocol, "the peer offers no queue pairs"});
  if (Status connected = connect_lanes(peer); !connected.ok())
    return initiator_ ? fail(connected, true) : reject(connected);
  if (!initiator_) hello_out_ = put_hello(own_hello());
}

Status ConnectionCore::connect_lanes(const Hello& peer) {
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const Nic& nic = engine_.nics[lanes_[i]->nic()];
    const LaneOffer& theirs = peer.lanes[i];
    Route route;
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
    // A GID may have gone since it was chosen.
    const auto now = select_gid(nic.name, nic.device->gids(), nic.port.ethernet, nic.gid.index);
    return now.ok() ? connected
                    : Status(connected.cause(), connected.text() + ": " + now.status().text());
  }
  return {};
}

/// From here on frames are exchanged.
void ConnectionCore::start() {
  control_ = std::make_unique<StreamLane>(std::move(stream_), chunk_, engine_.options.depth);
  engine_.log(log_line(engine_.facts, path));
  answered_ = true;
  if (initiator_) {
    queue_control(Frame{.type = FrameType::ready}, {}, no_lane);
    state = State::open;
  }
}

}  // namespace gdr::transport
