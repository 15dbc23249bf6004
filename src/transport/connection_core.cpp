#include "src/transport/connection_core.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/transport/crc32c.hpp"

namespace gdr::transport {
namespace {

/// A queue pair that failed for what may be only half of the reason waits this long for the peer's.
constexpr Duration patience{0.1};
// Ten times that, what a connection says last may take to leave.

std::vector<std::byte> bytes_of(const std::string& text) {
  const std::string part = text.substr(0, 200);
  const auto* begin = reinterpret_cast<const std::byte*>(part.data());
  return {begin, begin + part.size()};
}

/// Whether the entry that the queue pairs use is in the NIC's table still: it goes with its
/// address.
bool has_gid(const Nic& nic) {
  const auto entries = nic.device->gids();
  return std::any_of(entries.begin(), entries.end(), [&](const GidEntry& entry) {
    return entry.index == nic.gid.index && entry.gid == nic.gid.gid;
  });
}

}  // namespace

bool ConnectionCore::progress(bool thorough) {
  if (state == State::failed) {
    // Nobody is inside of them now.
    lanes_.clear();
    if (control_ != nullptr && (control_->ended() || engine_.verbs->now() > last_words_until_))
      control_.reset();
    return false;
  }
  bool any = false;
  if (control_ == nullptr) {
    progress_setup();
    if (control_ == nullptr) {
      check_deadlines();
      return false;
    }
    any = true;
  }
  // A system call, and the time another one where the kernel's clock is slow. Queue pairs bring
  // what is urgent.
  thorough = thorough || state != State::open || lanes_.empty() || suspected_since_ ||
             !control_->drained();
  if (thorough) any = control_->poll(*this) || any;
  for (std::size_t i = 0; i < lanes_.size() && state != State::failed; ++i)
    any = lanes_[i]->poll(*this) || any;
  if (state == State::failed) return true;
  if (!copies_out_.empty() || !copies_in_.empty()) any = finish_copies() || any;
  if (!to_issue_.empty() && state == State::open) any = issue_all() || any;
  if (!controls_.empty() && state != State::failed) any = send_control() || any;
  if (state != State::failed && thorough) check_deadlines();
  return any;
}

/// A control frame goes to the lane of its operation, or to the stream; those for one lane stay in
/// order.
bool ConnectionCore::send_control() {
  bool any = false;
  std::vector<std::size_t> blocked;
  for (auto control = controls_.begin(); control != controls_.end();) {
    const bool stopped = std::find(blocked.begin(), blocked.end(), control->lane) != blocked.end();
    Lane& lane = lane_at(control->lane);
    const auto room = stopped ? std::nullopt : lane.acquire(true);
    if (!room) {
      if (!stopped) blocked.push_back(control->lane);
      ++control;
      continue;
    }
    std::copy(control->payload.begin(), control->payload.end(), room->payload.begin());
    control->frame.payload = static_cast<std::uint32_t>(control->payload.size());
    lane.send(room->slot, control->frame);
    control = controls_.erase(control);
    any = true;
  }
  return any;
}

Lane& ConnectionCore::lane_at(std::size_t index) {
  if (index == no_lane || lanes_.empty()) return *control_;
  return *lanes_[index];
}

void ConnectionCore::queue_control(Frame frame, std::vector<std::byte> payload, std::size_t lane) {
  controls_.push_back({frame, std::move(payload), lane});
}

void ConnectionCore::reply_done(std::uint64_t operation, const Status& outcome,
                                std::uint64_t extra) {
  Frame frame;
  frame.type = FrameType::done;
  frame.operation = operation;
  frame.value = static_cast<std::uint64_t>(outcome.cause());
  frame.extra = extra;
  queue_control(frame, bytes_of(outcome.text()));
}

std::string ConnectionCore::words(const Operation& operation) const {
  switch (operation.kind) {
    case OperationKind::write:
      return fmt::format("write of {}", to_string(operation.size));
    case OperationKind::read:
      return fmt::format("read of {}", to_string(operation.size));
    case OperationKind::send:
      return fmt::format("send of {}", to_string(operation.size));
    case OperationKind::receive:
      return fmt::format("receive of up to {}", to_string(operation.size));
    case OperationKind::atomic:
      return "atomic";
    case OperationKind::serve_read:
      return fmt::format("the peer's read of {}", to_string(operation.size));
  }
  return "?";
}

/// That the range is in one allocation, and what is registered of it.
Status ConnectionCore::look_up_local(Operation& operation) {
  const bool registers = path.path == Path::gdr;
  if (registers && engine_.hears_every_free)
    operation.registered = engine_.registrations->find_again(operation.local, operation.size);
  if (operation.registered != nullptr) return {};
  const auto info = find_allocation(*engine_.memory, operation.local, operation.size);
  if (!info.ok()) return info.status();
  if (registers)
    operation.registered =
        engine_.registrations->find(info.value().allocation, operation.local, operation.size);
  return {};
}

Result<OperationId> ConnectionCore::begin(Operation&& operation) {
  if (state == State::setting_up) return Status(Cause::invalid, "the connection is not set up yet");
  if (state == State::failed) return status;
  if (operations.under_way() >= engine_.options.operations)
    return Status(Cause::queue_full,
                  fmt::format("{} operations are not finished yet", operations.under_way()));
  if (operation.kind == OperationKind::atomic) {
    if (operation.remote % 8 != 0)
      return Status(Cause::invalid,
                    fmt::format("an atomic at {:#x}, which is no multiple of 8", operation.remote));
  } else {
    if (Status local = look_up_local(operation); !local.ok()) return local;
  }
  if (Status way = choose_way(operation); !way.ok()) return way;
  const bool leaves =
      operation.kind == OperationKind::write || operation.kind == OperationKind::send;
  if (engine_.options.extra_copy && leaves)
    if (Status copied = copy_once_more(operation); !copied.ok()) return copied;
  const bool receive = operation.kind == OperationKind::receive;
  if (receive) operation.phase = Phase::waiting;
  const std::uint64_t number = operations.add(std::move(operation));
  (receive ? receives_ : to_issue_).push_back(number);
  if (receive) match_messages();
  if (state == State::open) issue_all();
  if (state == State::open) send_control();
  return OperationId{number};
}

void ConnectionCore::finish(std::uint64_t number, const Status& outcome, std::uint64_t old_value) {
  const Operation* operation = operations.find(number);
  if (operation == nullptr) return;
  if (operation->phase == Phase::issuing) std::erase(to_issue_, number);
  if (operation->phase == Phase::waiting) std::erase(receives_, number);
  if (operation->kind == OperationKind::serve_read) {
    if (!outcome.ok()) reply_done(operation->peer_operation, outcome);
    operations.drop(number);
  } else {
    const Bytes moved =
        operation->kind == OperationKind::receive ? operation->placed : operation->size;
    operations.finish(number, {outcome, outcome.ok() ? moved : Bytes{}, old_value});
  }
}

/// Ends everything: the queue pairs are gone before anybody hears of it, so that no NIC touches
/// memory afterwards.
void ConnectionCore::fail(const Status& why, bool tell_peer) {
  if (state == State::failed) return;
  state = State::failed;
  status = why;
  for (const auto& lane : lanes_) lane->shut();
  (void)engine_.memory->synchronize(out_);
  (void)engine_.memory->synchronize(in_);
  // Events are given back when they are done, which after that they are.
  for (const CopyOut& copy : copies_out_)
    for (auto done = engine_.memory->done(copy.event); done.ok() && !done.value();)
      done = engine_.memory->done(copy.event);
  for (const CopyIn& copy : copies_in_)
    for (auto done = engine_.memory->done(copy.event); done.ok() && !done.value();)
      done = engine_.memory->done(copy.event);
  copies_out_.clear();
  copies_in_.clear();
  controls_.clear();
  if (control_ != nullptr) {
    bytes_.socket_out = control_->data_sent();
    bytes_.socket_in = control_->data_received();
    Frame frame;
    frame.type = why.cause() == Cause::cancelled ? FrameType::goodbye : FrameType::abort;
    frame.value = static_cast<std::uint64_t>(why.cause());
    control_->end(frame, bytes_of(why.text()));
    last_words_until_ = engine_.verbs->now() + (tell_peer ? patience * 10 : Duration{});
  }
  stream_.reset();
  while (const std::uint64_t number = operations.oldest()) finish(number, why);
  inbound_.clear();
  messages_.clear();
  shares_.clear();
  shared_by_peer.clear();
}

void ConnectionCore::check_deadlines() {
  const Duration now = engine_.verbs->now();
  if (state == State::setting_up && now > setup_deadline_)
    return fail({Cause::timed_out, fmt::format("{}: the connection was not set up within {}",
                                               peer_name_, to_string(engine_.options.setup_limit))},
                true);
  operations.date_new(now + engine_.options.limit);
  if (suspected_since_ && now > *suspected_since_ + patience) return fail(suspicion_, true);
  // They were asked for one after another with the same limit: the first one's is over first.
  while (const std::uint64_t number = operations.oldest()) {
    const Operation& operation = *operations.find(number);
    if (now <= operation.deadline) break;
    const Status late(Cause::timed_out, fmt::format("{}: not done within {}", words(operation),
                                                    to_string(engine_.options.limit)));
    // Nothing is under way for a receive that no message has met.
    if (operation.kind == OperationKind::receive && operation.phase == Phase::waiting) {
      finish(number, late);
      continue;
    }
    return fail(late, true);
  }
}

void ConnectionCore::on_broken(const Status& why) {
  if (state == State::failed) return;
  if (peer_closed_)
    return fail({Cause::peer_gone, fmt::format("{} closed the connection", peer_name_)}, false);
  fail(why, why.cause() != Cause::peer_gone);
}

/// Fails for this reason, unless a better one comes.
void ConnectionCore::suspect(const Status& why) {
  if (suspected_since_ && suspicion_.cause() != Cause::device_failed) return;
  suspicion_ = why;
  if (!suspected_since_) suspected_since_ = engine_.verbs->now();
}

/// What a queue pair says is often only half of it: the peer may have told the reason.
void ConnectionCore::on_broken(Lane& lane, Outcome outcome) {
  if (state == State::failed) return;
  (void)control_->poll(*this);
  if (state == State::failed) return;
  const auto own = std::find_if(lanes_.begin(), lanes_.end(),
                                [&](const auto& known) { return known.get() == &lane; });
  const Nic& nic = engine_.nics[(*own)->nic()];
  const std::string what(to_string(outcome));
  // rdma_rxe finds no way from an address that is gone and says local_operation; others keep on
  // sending.
  if (outcome == Outcome::retry_exceeded || outcome == Outcome::local_operation) {
    if (nic.port_down || !nic.device->port().active)
      return fail({Cause::link_lost, fmt::format("{}: its port is down ({})", nic.name, what)},
                  true);
    if (!has_gid(nic))
      return fail(
          {Cause::link_lost, fmt::format("{}: its address {} is gone from GID index {} ({})",
                                         nic.name, to_string(nic.gid.gid), nic.gid.index, what)},
          true);
  }
  switch (outcome) {
    case Outcome::flushed:
      return suspect({Cause::device_failed,
                      fmt::format("{}: a queue pair failed, and nobody said why", peer_name_)});
    case Outcome::retry_exceeded:
      return fail({Cause::peer_gone,
                   fmt::format("{} does not answer on {} ({})", peer_name_, nic.name, what)},
                  true);
    case Outcome::rnr_exceeded:
      return fail({Cause::peer_gone,
                   fmt::format("{} takes no more messages on {} ({})", peer_name_, nic.name, what)},
                  true);
    case Outcome::remote_access:
    case Outcome::remote_invalid:
    case Outcome::remote_operation:
      // A peer that is killed loses its memory first, one that frees memory says so.
      return suspect({Cause::remote_access,
                      fmt::format("{} refused an address or key ({}); was its memory freed?",
                                  peer_name_, what)});
    default:
      return fail({Cause::device_failed, fmt::format("{}: {}", nic.name, what)}, true);
  }
}

void ConnectionCore::memory_freed(const memory::PointerInfo& info) {
  if (state == State::failed) return;
  const auto inside = [&](std::uint64_t address) {
    return address >= info.base.address && address - info.base.address < info.size.count;
  };
  bool used = false;
  std::string by;
  operations.each([&](const Operation& operation) {
    if (operation.kind == OperationKind::atomic || !inside(operation.local.address)) return;
    used = true;
    by = words(operation);
  });
  for (const auto& [number, inbound] : inbound_)
    if (inside(inbound.address)) used = true, by = "a write of the peer";
  if (used)
    return fail({Cause::memory_freed,
                 fmt::format("memory at {:#x} was freed during {}", info.base.address, by)},
                true);
  std::vector<std::uint64_t> tags;
  for (const auto& [tag, share] : shares_)
    if (share.allocation == info.allocation) tags.push_back(tag);
  for (const std::uint64_t tag : tags) (void)unshare(tag);
}

Status ConnectionCore::share(std::uint64_t tag, memory::DevicePointer pointer, Bytes size) {
  if (state != State::open)
    return state == State::failed ? status
                                  : Status(Cause::invalid, "the connection is not set up yet");
  const auto info = find_allocation(*engine_.memory, pointer, size);
  if (!info.ok()) return info.status();
  if (shares_.contains(tag))
    return {Cause::invalid, fmt::format("a range with tag {} is shared already", tag)};
  Share share{pointer, size, info.value().allocation, nullptr};
  std::vector<std::uint32_t> keys;
  if (path.path == Path::gdr) {
    const auto registered = engine_.registrations->get(pointer, size);
    if (registered.ok()) {
      share.registered = registered.value();
      keys = remote_keys(*share.registered);
    } else {
      if (engine_.options.path) return registered.status();
      engine_.log(fmt::format(
          "GPU Direct RDMA Disabled for GPU {} / HCA {}: the shared range of {} is staged: {}",
          engine_.facts.memory, engine_.facts.nics, to_string(size), registered.status().text()));
    }
  }
  Frame frame;
  frame.type = FrameType::share;
  frame.value = tag;
  frame.address = pointer.address;
  frame.total = size.count;
  queue_control(frame, put_keys(keys), no_lane);
  shares_.emplace(tag, std::move(share));
  send_control();
  return {};
}

Status ConnectionCore::unshare(std::uint64_t tag) {
  if (shares_.erase(tag) == 0)
    return {Cause::invalid, fmt::format("no range with tag {} is shared", tag)};
  Frame frame;
  frame.type = FrameType::unshare;
  frame.value = tag;
  queue_control(frame, {}, no_lane);
  return {};
}

const Share* ConnectionCore::share_of(std::uint64_t address, std::uint64_t size) const {
  for (const auto& [tag, share] : shares_) {
    const std::uint64_t base = share.pointer.address;
    if (address >= base && address - base <= share.size.count &&
        size <= share.size.count - (address - base))
      return &share;
  }
  return nullptr;
}

Status ConnectionCore::flush(memory::DevicePointer pointer, Bytes size) {
  if (!engine_.flushes || size.count == 0) return {};
  return engine_.memory->flush(pointer, size);
}

/// CRC32C of device memory, read by the copy engine piece by piece.
Result<std::uint32_t> ConnectionCore::checksum(memory::DevicePointer pointer, Bytes size) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(size.count, std::uint64_t{256} << 10U));
  Crc32c crc;
  for (std::uint64_t at = 0; at < size.count; at += piece.size()) {
    const Bytes part{std::min<std::uint64_t>(piece.size(), size.count - at)};
    if (Status copied = engine_.memory->copy_out(piece.data(), pointer + Bytes{at}, part, out_);
        !copied.ok())
      return copied;
    if (Status done = engine_.memory->synchronize(out_); !done.ok()) return done;
    crc.add({piece.data(), part.count});
  }
  return crc.value();
}

PathBytes ConnectionCore::bytes() const {
  PathBytes bytes = bytes_;
  if (control_ == nullptr || state == State::failed) return bytes;
  bytes.socket_out = control_->data_sent();
  bytes.socket_in = control_->data_received();
  return bytes;
}

bool ConnectionCore::drained() const {
  return controls_.empty() && copies_out_.empty() && (control_ == nullptr || control_->drained()) &&
         std::all_of(lanes_.begin(), lanes_.end(),
                     [](const auto& lane) { return lane->drained(); });
}

void ConnectionCore::close_now() { fail({Cause::cancelled, "the connection was closed"}, true); }

}  // namespace gdr::transport
