// The other side of an agent: one end at a time, which makes progress by itself between requests.
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <map>

#include "tests/transport/guests/agent.hpp"
#include "tests/transport/guests/messages.hpp"

namespace gdr::transport {
namespace {

class Server {
 public:
  int run();

 private:
  template <typename... Values, typename Function>
  std::vector<std::byte> answer(Reader& reader, Function function) {
    const std::tuple<Values...> values{get<Values>(reader)...};
    Writer writer;
    put(writer, std::apply(function, values));
    return writer.bytes();
  }
  /// The same for a function of a connection, whose number comes first.
  template <typename... Values, typename Function>
  std::vector<std::byte> of_connection(Reader& reader, Function function) {
    Connection& connection = *connections_.at(get<std::uint64_t>(reader));
    return answer<Values...>(
        reader, [&](const Values&... values) { return function(connection, values...); });
  }
  std::vector<std::byte> obey(Reader& reader);
  std::vector<std::byte> obey_memory(Request request, Reader& reader);
  std::vector<std::byte> obey_connection(Request request, Reader& reader);
  std::vector<std::byte> obey_operation(Request request, Reader& reader);
  std::string make_end(const MemoryChoice& choice, TransportOptions options);
  bool drop_end();
  std::uint64_t accept();
  void move_on();

  std::unique_ptr<Listener> listener_ = listen(SetUp::tcp, Agent::transport_port);
  std::vector<std::string> log_;
  std::shared_ptr<memory::DeviceMemory> memory_;
  std::unique_ptr<Transport> transport_;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;
  std::uint64_t last_connection_ = 0;
};

std::string Server::make_end(const MemoryChoice& choice, TransportOptions options) {
  drop_end();
  try {
    memory_ = make_memory(choice, 1);
    options.log = [this](const std::string& line) { log_.push_back(line); };
    transport_ = std::make_unique<Transport>(make_ibverbs(), memory_, options);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

bool Server::drop_end() {
  connections_.clear();
  transport_.reset();
  memory_.reset();
  log_.clear();
  return true;
}

/// 0: no connection came.
std::uint64_t Server::accept() {
  auto stream = listener_->accept(Duration{30});
  if (!stream.ok()) return 0;
  connections_.emplace(++last_connection_, transport_->open(std::move(stream.value()), false));
  return last_connection_;
}

std::vector<std::byte> Server::obey_memory(Request request, Reader& reader) {
  using memory::DevicePointer;
  memory::DeviceMemory& memory = *memory_;
  const auto whole = [&](const Status& asked) {
    return asked.ok() ? memory.synchronize({}) : asked;
  };
  switch (request) {
    case Request::name:
      return answer<>(reader, [&] { return memory.name(); });
    case Request::sysfs_device:
      return answer<>(reader, [&] { return memory.sysfs_device(); });
    case Request::granularity:
      return answer<>(reader, [&] { return memory.granularity(); });
    case Request::moved:
      return answer<>(reader, [&] { return memory.moved(); });
    case Request::allocate:
      return answer<Bytes>(reader, [&](Bytes size) { return memory.allocate(size); });
    case Request::free:
      return answer<DevicePointer>(reader,
                                   [&](DevicePointer pointer) { return memory.free(pointer); });
    case Request::query:
      return answer<DevicePointer>(reader,
                                   [&](DevicePointer pointer) { return memory.query(pointer); });
    case Request::copy_in:
      return answer<DevicePointer, std::vector<std::byte>>(
          reader, [&](DevicePointer to, const std::vector<std::byte>& bytes) {
            return whole(memory.copy_in(to, bytes.data(), Bytes{bytes.size()}, {}));
          });
    case Request::copy_out:
      return answer<DevicePointer, Bytes>(reader, [&](DevicePointer from, Bytes size) {
        std::vector<std::byte> bytes(size.count);
        Status done = whole(memory.copy_out(bytes.data(), from, size, {}));
        return done.ok() ? Result<std::vector<std::byte>>(std::move(bytes))
                         : Result<std::vector<std::byte>>(std::move(done));
      });
    case Request::copy_within:
      return answer<DevicePointer, DevicePointer, Bytes>(
          reader, [&](DevicePointer to, DevicePointer from, Bytes size) {
            return whole(memory.copy_within(to, from, size, {}));
          });
    case Request::fill:
      return answer<DevicePointer, std::uint8_t, Bytes>(
          reader, [&](DevicePointer to, std::uint8_t value, Bytes size) {
            return whole(memory.fill(to, value, size, {}));
          });
    case Request::flush:
      return answer<DevicePointer, Bytes>(
          reader, [&](DevicePointer pointer, Bytes size) { return memory.flush(pointer, size); });
    default:
      return obey_connection(request, reader);
  }
}

std::vector<std::byte> Server::obey_connection(Request request, Reader& reader) {
  switch (request) {
    case Request::ready:
      return of_connection<>(reader, [](Connection& c) { return c.ready(); });
    case Request::status:
      return of_connection<>(reader, [](Connection& c) { return c.status(); });
    case Request::path:
      return of_connection<>(reader, [](Connection& c) { return c.path(); });
    case Request::bytes:
      return of_connection<>(reader, [](Connection& c) { return c.bytes(); });
    case Request::arrival:
      return of_connection<>(reader, [](Connection& c) { return c.arrival(); });
    case Request::close:
      return of_connection<>(reader, [](Connection& c) { return c.close(), true; });
    case Request::forget:
      return answer<std::uint64_t>(
          reader, [&](std::uint64_t number) { return connections_.erase(number) == 1; });
    case Request::share:
      return of_connection<std::uint64_t, memory::DevicePointer, Bytes>(
          reader, [](Connection& c, std::uint64_t tag, memory::DevicePointer pointer, Bytes size) {
            return c.share(tag, pointer, size);
          });
    case Request::unshare:
      return of_connection<std::uint64_t>(
          reader, [](Connection& c, std::uint64_t tag) { return c.unshare(tag); });
    case Request::shared:
      return of_connection<std::uint64_t>(
          reader, [](Connection& c, std::uint64_t tag) { return c.shared(tag); });
    default:
      return obey_operation(request, reader);
  }
}

std::vector<std::byte> Server::obey_operation(Request request, Reader& reader) {
  using memory::DevicePointer;
  using Number = std::uint64_t;
  switch (request) {
    case Request::write:
      return of_connection<DevicePointer, RemoteRange, Bytes, Bytes, std::optional<std::uint32_t>>(
          reader, [](Connection& c, DevicePointer from, const RemoteRange& to, Bytes offset,
                     Bytes size, std::optional<std::uint32_t> immediate) {
            return c.write(from, to, offset, size, immediate);
          });
    case Request::read:
      return of_connection<DevicePointer, RemoteRange, Bytes, Bytes>(
          reader, [](Connection& c, DevicePointer to, const RemoteRange& from, Bytes offset,
                     Bytes size) { return c.read(to, from, offset, size); });
    case Request::send:
      return of_connection<DevicePointer, Bytes>(
          reader, [](Connection& c, DevicePointer from, Bytes size) { return c.send(from, size); });
    case Request::receive:
      return of_connection<DevicePointer, Bytes>(
          reader, [](Connection& c, DevicePointer to, Bytes room) { return c.receive(to, room); });
    case Request::fetch_add:
      return of_connection<RemoteRange, Bytes, Number>(
          reader, [](Connection& c, const RemoteRange& at, Bytes offset, Number operand) {
            return c.fetch_add(at, offset, operand);
          });
    case Request::compare_swap:
      return of_connection<RemoteRange, Bytes, Number, Number>(
          reader, [](Connection& c, const RemoteRange& at, Bytes offset, Number expected,
                     Number desired) { return c.compare_swap(at, offset, expected, desired); });
    case Request::test:
      return of_connection<OperationId>(
          reader, [](Connection& c, OperationId operation) { return c.test(operation); });
    default:
      throw InputError("an unknown request");
  }
}

std::vector<std::byte> Server::obey(Reader& reader) {
  const auto request = get<Request>(reader);
  switch (request) {
    case Request::make_end:
      return answer<MemoryChoice, TransportOptions>(
          reader, [&](const MemoryChoice& memory, const TransportOptions& options) {
            return make_end(memory, options);
          });
    case Request::drop_end:
      return answer<>(reader, [&] { return drop_end(); });
    case Request::connect:
      return answer<>(reader, [&] { return accept(); });
    case Request::log:
      return answer<>(reader, [&] { return log_; });
    case Request::run:
      return answer<std::string>(reader,
                                 [](const std::string& command) { return run_here(command); });
    case Request::die:
      kill(getpid(), SIGKILL);
      return {};
    default:
      return obey_memory(request, reader);
  }
}

void Server::move_on() {
  if (transport_ != nullptr) (void)transport_->progress();
}

int Server::run() {
  const auto listener = listen(SetUp::tcp, Agent::port);
  auto stream = listener->accept(Duration{120});
  if (!stream.ok()) throw InputError(stream.status().text());
  for (;;) {
    const auto request = receive_message(*stream.value(), Duration{120}, [&] { move_on(); });
    if (!request.ok()) {
      drop_end();
      if (request.status().cause() == Cause::peer_gone) return 0;
      throw InputError(request.status().text());
    }
    Reader reader(request.value());
    if (Status sent = send_message(*stream.value(), obey(reader), [&] { move_on(); }); !sent.ok())
      throw InputError(sent.text());
  }
}

}  // namespace

int serve_agent() { return Server().run(); }

}  // namespace gdr::transport
