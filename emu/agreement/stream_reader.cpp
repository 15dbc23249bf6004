#include "emu/agreement/stream_reader.hpp"

#include <algorithm>

#include "src/transport/lanes/frame.hpp"
#include "src/transport/measure.hpp"

namespace gdr::agreement {
namespace {

constexpr std::size_t largest_payload = std::size_t{16} << 20U;

}  // namespace

std::size_t StreamReader::wanted() const {
  switch (expect_) {
    case Expect::beginning:
      return transport::plan_header;
    case Expect::hello:
      return transport::hello_header;
    default:
      return transport::frame_header;
  }
}

/// The client's first bytes are the plan of the run, the server's its greeting.
void StreamReader::begin() {
  if (const auto body = transport::plan_body(std::span<const std::byte, transport::plan_header>(
          header_.data(), transport::plan_header))) {
    control_.count += header_.size();
    header_.clear();
    payload_ = *body;
    payload_is_data_ = false;
    next_ = Expect::hello;
    expect_ = Expect::payload;
    return;
  }
  // Not a plan: these bytes begin the greeting.
  const std::vector<std::byte> read = std::move(header_);
  header_.clear();
  expect_ = Expect::hello;
  take(read);
}

void StreamReader::header_complete() {
  if (expect_ == Expect::beginning) return begin();
  bool understood = false;
  if (expect_ == Expect::hello) {
    const auto body =
        transport::parse_hello_header(std::span<const std::byte, transport::hello_header>(
            header_.data(), transport::hello_header));
    understood = body.ok();
    if (understood) payload_ = body.value();
    payload_is_data_ = false;
  } else {
    const auto frame = transport::parse_frame(std::span<const std::byte, transport::frame_header>(
                                                  header_.data(), transport::frame_header),
                                              largest_payload);
    understood = frame.ok();
    if (understood) payload_ = frame.value().payload;
    payload_is_data_ = understood && transport::carries_data(frame.value().type);
  }
  (understood ? control_ : data_).count += header_.size();
  header_.clear();
  next_ = Expect::frame;
  expect_ = understood ? Expect::payload : Expect::anything;
}

void StreamReader::take(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (expect_ == Expect::anything) {
      data_.count += bytes.size();
      return;
    }
    if (expect_ == Expect::payload) {
      const std::size_t part = std::min<std::uint64_t>(payload_, bytes.size());
      (payload_is_data_ ? data_ : control_).count += part;
      payload_ -= part;
      bytes = bytes.subspan(part);
      if (payload_ == 0) expect_ = next_;
      continue;
    }
    const std::size_t part = std::min(wanted() - header_.size(), bytes.size());
    header_.insert(header_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(part));
    bytes = bytes.subspan(part);
    if (header_.size() == wanted()) header_complete();
  }
}

void StreamFollower::pass_on(std::span<const std::byte> bytes) {
  reader_.take(bytes);
  position_ += bytes.size();
  next_ += static_cast<std::uint32_t>(bytes.size());
}

void StreamFollower::take(std::uint32_t sequence, bool begins, std::span<const std::byte> payload) {
  if (begins) {
    earlier_data_ = data();
    earlier_control_ = control();
    reader_ = StreamReader();
    waiting_.clear();
    position_ = 0;
  }
  if (begins || !begun_) next_ = begins ? sequence + 1 : sequence;
  begun_ = true;
  if (begins || payload.empty()) return;
  const auto ahead = static_cast<std::int32_t>(sequence - next_);
  if (ahead < 0) {
    const auto known = static_cast<std::size_t>(-static_cast<std::int64_t>(ahead));
    if (known >= payload.size()) return;
    payload = payload.subspan(known);
  }
  const std::uint64_t at = position_ + static_cast<std::uint64_t>(std::max(ahead, 0));
  std::vector<std::byte>& kept = waiting_[at];
  if (kept.size() < payload.size()) kept.assign(payload.begin(), payload.end());
  while (!waiting_.empty() && waiting_.begin()->first <= position_) {
    const auto [start, bytes] = std::move(*waiting_.begin());
    waiting_.erase(waiting_.begin());
    const std::uint64_t known = position_ - start;
    if (known < bytes.size()) pass_on(std::span<const std::byte>(bytes).subspan(known));
  }
}

}  // namespace gdr::agreement
