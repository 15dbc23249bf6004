#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/transport/lanes/byte_stream.hpp"
#include "tests/transport/guests/codec.hpp"

namespace gdr::transport {

/// The requests of A to B's process, which answers one after another.
enum class Request : std::uint8_t {
  make_end,
  drop_end,
  connect,
  log,
  run,
  die,
  name,
  sysfs_device,
  granularity,
  allocate,
  free,
  query,
  copy_in,
  copy_out,
  copy_within,
  fill,
  flush,
  moved,
  ready,
  status,
  path,
  bytes,
  share,
  unshare,
  shared,
  write,
  read,
  send,
  receive,
  fetch_add,
  compare_swap,
  test,
  arrival,
  close,
  forget,
};

/// The other end of pairs in guests: a process on the other host, over the management network. It
/// makes progress at its end by itself.
class Agent {
 public:
  static constexpr std::uint16_t port = 18600;
  static constexpr std::uint16_t transport_port = 18601;

  /// `management` and `nic` are the other host's addresses. Throws InputError when no answer comes
  /// within a minute.
  Agent(std::string management, std::string nic);

  /// Sends the request and waits for the answer, a minute at most. Throws InputError when there is
  /// none.
  template <typename Answer, typename... Values>
  Answer ask(Request request, const Values&... values) {
    Writer writer;
    put(writer, request);
    (put(writer, values), ...);
    const auto bytes = exchange(writer.bytes());
    Reader reader(bytes);
    return get<Answer>(reader);
  }

  std::shared_ptr<memory::DeviceMemory> make_end(const MemoryChoice& memory,
                                                 const TransportOptions& options);
  void drop_end() { (void)ask<bool>(Request::drop_end); }
  /// A stream from here, and the number of the connection over there.
  std::pair<std::unique_ptr<ByteStream>, std::uint64_t> connect(bool over_management);
  std::vector<std::string> log() { return ask<std::vector<std::string>>(Request::log); }
  /// Runs a shell command on the other host; returns its output.
  std::string run(const std::string& command) { return ask<std::string>(Request::run, command); }
  /// The process ends by SIGKILL; the next request is an error.
  void die();

  std::function<void()> on_wait;  ///< called repeatedly while waiting for an answer

 private:
  void send(const std::vector<std::byte>& bytes);
  std::vector<std::byte> exchange(const std::vector<std::byte>& request);

  std::string management_;
  std::string nic_;
  std::unique_ptr<ByteStream> stream_;
};

/// Runs a shell command here; returns its output.
std::string run_here(const std::string& command);

/// The other side: obeys until the peer has gone, which is a success. Returns the exit code.
int serve_agent();

}  // namespace gdr::transport
