#include "tests/transport/guests/messages.hpp"

#include <sched.h>

#include <chrono>
#include <cstring>

namespace gdr::transport {
namespace {

using Clock = std::chrono::steady_clock;

void pause(const std::function<void()>& meanwhile) {
  if (meanwhile) meanwhile();
  sched_yield();
}

Status read_all(ByteStream& stream, std::span<std::byte> bytes, Clock::time_point end,
                const std::function<void()>& meanwhile) {
  while (!bytes.empty()) {
    const auto count = stream.read_some(bytes);
    if (!count.ok()) return count.status();
    if (Clock::now() > end) return {Cause::timed_out, "the other end's process says nothing"};
    if (count.value() == 0) pause(meanwhile);
    bytes = bytes.subspan(count.value());
  }
  return {};
}

}  // namespace

Status send_message(ByteStream& stream, const std::vector<std::byte>& bytes,
                    const std::function<void()>& meanwhile) {
  std::vector<std::byte> all(8);
  const std::uint64_t size = bytes.size();
  std::memcpy(all.data(), &size, 8);
  all.insert(all.end(), bytes.begin(), bytes.end());
  std::span<const std::byte> rest(all);
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (!rest.empty()) {
    const auto count = stream.write_some(rest);
    if (!count.ok()) return count.status();
    if (Clock::now() > end) return {Cause::timed_out, "the other end's process takes nothing"};
    if (count.value() == 0) pause(meanwhile);
    rest = rest.subspan(count.value());
  }
  return {};
}

Result<std::vector<std::byte>> receive_message(ByteStream& stream, Duration limit,
                                               const std::function<void()>& meanwhile) {
  const auto end =
      Clock::now() + std::chrono::milliseconds(static_cast<std::int64_t>(limit.seconds * 1e3));
  std::uint64_t size = 0;
  std::vector<std::byte> bytes(8);
  if (Status read = read_all(stream, bytes, end, meanwhile); !read.ok()) return read;
  std::memcpy(&size, bytes.data(), 8);
  constexpr std::uint64_t most = 256U << 20U;
  if (size > most) return Status(Cause::protocol, "the other end's process sends nonsense");
  bytes.resize(size);
  if (Status read = read_all(stream, bytes, end, meanwhile); !read.ok()) return read;
  return bytes;
}

}  // namespace gdr::transport
