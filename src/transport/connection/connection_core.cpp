#include "src/transport/connection/connection_core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/transport/connection/diagnosis.hpp"

namespace gdr::transport {
namespace {

/// After a queue pair fails, wait this long for the peer to report the cause.
constexpr Duration patience{0.1};
/// Final messages may take this long to drain.
constexpr Duration last_words_limit = patience * 10;

}  // namespace

ConnectionCore::ConnectionCore(ProgressEngine& engine, std::unique_ptr<ByteStream> stream,
                               bool initiator)
    : engine_(engine),
      peer_(stream->peer()),
      setup_deadline_(engine.verbs->now() + engine.options.setup_limit),
      handshake_(std::make_unique<Handshake>(engine, std::move(stream), initiator)),
      control_(lanes_),
      bounce_(*engine.memory),
      ranges_(engine, lanes_, control_),
      outgoing_(engine, lanes_, bounce_, control_, ranges_),
      incoming_(engine, lanes_, bounce_, control_, ranges_, outgoing_),
      initiator_(initiator) {
  fail_unless_ok(handshake_->begin());
}

ConnectionCore::~ConnectionCore() { close_now(); }

bool ConnectionCore::progress(bool thorough) {
  if (state_ == State::failed) {
    // No caller is inside them now.
    lanes_.drop_queue_pairs();
    if (lanes_.opened()) lanes_.close_stream(engine_.verbs->now() > last_words_until_);
    return false;
  }
  bool any = false;
  if (handshake_ != nullptr) {
    if (!progress_handshake()) return false;
    any = true;
  }
  // This costs a system call, and so does reading the time where the kernel's clock is slow. Urgent
  // events arrive by the queue pairs.
  thorough = thorough || state_ != State::open || lanes_.queue_pairs() == 0 || broken_since_ ||
             !lanes_.stream_drained();
  if (thorough) any = lanes_.poll_stream(*this) || any;
  for (std::size_t i = 0; i < lanes_.queue_pairs() && state_ != State::failed; ++i)
    any = lanes_.queue_pair(i).poll(*this) || any;
  if (state_ == State::failed) return true;
  if (!bounce_.idle()) any = finish_copies() || any;
  if (outgoing_.to_issue() && state_ == State::open) issue(any);
  if (!control_.empty() && state_ != State::failed) any = control_.send() || any;
  if (thorough && state_ != State::failed) check_deadlines();
  return any;
}

/// True once it is done.
bool ConnectionCore::progress_handshake() {
  auto done = handshake_->progress();
  if (!done.ok()) {
    fail(done.status(), false);
    return false;
  }
  if (!done.value()) {
    check_deadlines();
    return false;
  }
  Negotiated& agreed = *done.value();
  path_ = std::move(agreed.path);
  lanes_.open(
      std::move(agreed.queue_pairs),
      std::make_unique<StreamLane>(std::move(agreed.stream), agreed.chunk, engine_.options.depth));
  outgoing_.open(path_.path, agreed.chunk);
  handshake_.reset();
  engine_.log(log_line(engine_.facts, path_));
  // The other side is open once it learns that the initiator's queue pairs are connected.
  if (initiator_) {
    control_.add(Frame{.type = FrameType::ready}, {}, LaneSet::stream_index);
    state_ = State::open;
  }
  return true;
}

/// Handles copies that have ended: full bounce buffers are sent, empty ones are given back.
bool ConnectionCore::finish_copies() {
  bool any = false;
  for (;;) {
    const auto sent = bounce_.next_sent();
    if (!sent.ok()) return fail(sent.status(), true), true;
    if (!sent.value()) break;
    any = true;
    outgoing_.frame_left(sent.value()->operation, sent.value()->frame);
  }
  for (;;) {
    const auto placed = bounce_.next_placed();
    if (!placed.ok()) return fail(placed.status(), true), true;
    if (!placed.value()) break;
    any = true;
    incoming_.placed(placed.value()->frame);
  }
  return any;
}

void ConnectionCore::issue(bool& any) { fail_unless_ok(outgoing_.issue(any)); }

Result<OperationId> ConnectionCore::begin(Operation&& operation) {
  if (state_ == State::setting_up)
    return Status(Cause::invalid, "the connection is not set up yet");
  if (state_ == State::failed) return status_;
  auto number = outgoing_.begin(std::move(operation));
  if (!number.ok()) return number;
  incoming_.match_messages();
  bool any = false;
  issue(any);
  if (state_ == State::open && !control_.empty()) control_.send();
  return number;
}

Status ConnectionCore::share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size) {
  if (state_ == State::failed) return status_;
  if (state_ == State::setting_up) return {Cause::invalid, "the connection is not set up yet"};
  Status shared = ranges_.share(tag, pointer, size, path_.path);
  if (shared.ok()) control_.send();
  return shared;
}

std::optional<RemoteRange> ConnectionCore::shared_by_peer(std::uint64_t tag) const {
  const auto* found = ranges_.of_peer(tag);
  return found == nullptr ? std::nullopt : std::optional(found->range);
}

void ConnectionCore::on_frame(Lane& lane, const Frame& frame, unsigned slot) {
  if (state_ == State::failed) return;
  const bool by_stream = lanes_.is_stream(lane);
  if (!by_stream || frame.type == FrameType::ready) state_ = State::open;
  if (carries_data(frame.type)) return fail_unless_ok(incoming_.take_data(lane, frame, slot));
  const auto received = lane.received(slot).first(frame.payload);
  const std::vector<std::byte> payload(received.begin(), received.end());
  lane.release(slot);
  on_control(frame, payload, by_stream);
}

void ConnectionCore::on_immediate(std::uint32_t immediate, Bytes size) {
  fail_unless_ok(incoming_.take_immediate(immediate, size));
}

void ConnectionCore::on_control(const Frame& frame, std::span<const std::byte> payload,
                                bool by_stream) {
  switch (frame.type) {
    case FrameType::share:
      return fail_unless_ok(ranges_.take_share(frame, payload));
    case FrameType::unshare:
      return ranges_.take_unshare(frame);
    case FrameType::get:
      return incoming_.take_get(frame);
    case FrameType::message:
      return fail_unless_ok(incoming_.take_message(frame, payload));
    case FrameType::clear:
      return fail_unless_ok(outgoing_.take_clear(frame));
    case FrameType::atomic:
      return incoming_.take_atomic(frame);
    case FrameType::notify:
      return fail_unless_ok(incoming_.take_notify(frame));
    case FrameType::verify:
      return incoming_.take_verify(frame);
    case FrameType::done:
      return outgoing_.take_done(frame, payload, peer_);
    case FrameType::abort:
      return fail(
          {Cause::peer_failed, fmt::format("{}: {}: {}", peer_, to_string(parse_cause(frame.value)),
                                           parse_text(payload))},
          false);
    case FrameType::goodbye:
      return take_goodbye(by_stream);
    case FrameType::ready:
    case FrameType::credit:
    case FrameType::put:
    case FrameType::reply:
    case FrameType::body:
      return;
  }
}

void ConnectionCore::take_goodbye(bool by_stream) {
  peer_closed_ = true;
  if (!by_stream) return;
  // What the peer sent before it closed has arrived: queue pairs are polled until they are empty.
  for (std::size_t i = 0; i < lanes_.queue_pairs(); ++i)
    while (state_ == State::open && lanes_.queue_pair(i).poll(*this)) continue;
  fail({Cause::peer_gone, fmt::format("{} closed the connection", peer_)}, false);
}

void ConnectionCore::on_broken(const Status& why) {
  if (state_ == State::failed) return;
  if (peer_closed_)
    return fail({Cause::peer_gone, fmt::format("{} closed the connection", peer_)}, false);
  fail(why, why.cause() != Cause::peer_gone);
}

/// A queue pair often reports only half of the reason: the peer may have sent the rest.
void ConnectionCore::on_broken(Lane& lane, CompletionStatus failure) {
  if (state_ == State::failed) return;
  (void)lanes_.poll_stream(*this);
  if (state_ == State::failed) return;
  const Diagnosis diagnosis = diagnose(engine_.nics[lanes_.find(lane)->nic()], failure, peer_);
  if (diagnosis.certain) return fail(diagnosis.why, true);
  wait_for_peers_reason(diagnosis.why);
}

/// device_failed only means that nothing is known: any other reason replaces it.
void ConnectionCore::wait_for_peers_reason(const Status& why) {
  if (broken_since_ && broken_because_.cause() != Cause::device_failed) return;
  broken_because_ = why;
  if (!broken_since_) broken_since_ = engine_.verbs->now();
}

void ConnectionCore::memory_freed(const memory::PointerInfo& info) {
  if (state_ == State::failed) return;
  std::optional<std::string> user = outgoing_.user_of(info);
  if (incoming_.uses(info)) user = "a write of the peer";
  if (user)
    return fail({Cause::memory_freed,
                 fmt::format("memory at {:#x} was freed during {}", info.base.address, *user)},
                true);
  ranges_.unshare_allocation(info.allocation);
}

void ConnectionCore::check_deadlines() {
  const Duration now = engine_.verbs->now();
  if (state_ == State::setting_up && now > setup_deadline_)
    return fail({Cause::timed_out, fmt::format("{}: the connection was not set up within {}", peer_,
                                               to_string(engine_.options.setup_limit))},
                true);
  if (broken_since_ && now > *broken_since_ + patience) return fail(broken_because_, true);
  fail_unless_ok(outgoing_.check_deadlines(now));
}

/// Ends everything. The queue pairs are destroyed before anyone is notified, so that no NIC touches
/// memory afterwards.
void ConnectionCore::fail(const Status& why, bool tell_peer) {
  if (state_ == State::failed) return;
  state_ = State::failed;
  status_ = why;
  lanes_.shut_queue_pairs();
  bounce_.stop();
  control_.clear();
  if (lanes_.opened()) {
    Frame last;
    last.type = why.cause() == Cause::cancelled ? FrameType::goodbye : FrameType::abort;
    last.value = static_cast<std::uint64_t>(why.cause());
    lanes_.end_stream(last, why.text());
    last_words_until_ = engine_.verbs->now() + (tell_peer ? last_words_limit : Duration{});
  }
  handshake_.reset();
  outgoing_.end_all(why);
  control_.clear();  // the answers to the peer
  incoming_.clear();
  ranges_.clear();
}

void ConnectionCore::close_now() { fail({Cause::cancelled, "the connection was closed"}, true); }

bool ConnectionCore::drained() const {
  return control_.empty() && bounce_.sent_all() && lanes_.drained();
}

PathBytes ConnectionCore::bytes() const {
  PathBytes bytes;
  bytes.rdma = outgoing_.rdma_bytes();
  bytes.bounce_out = outgoing_.bounced_bytes();
  bytes.bounce_in = incoming_.bounced_bytes();
  bytes.socket_out = lanes_.socket_sent();
  bytes.socket_in = lanes_.socket_received();
  return bytes;
}

}  // namespace gdr::transport
