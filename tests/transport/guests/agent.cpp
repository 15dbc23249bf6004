#include "tests/transport/guests/agent.hpp"

#include <fmt/format.h>

#include <array>
#include <chrono>

#include "tests/transport/guests/messages.hpp"

namespace gdr::transport {
namespace {

/// Memory of the process at the other end. Every call is complete when it returns, so streams and
/// events have no effect.
class AgentMemory final : public memory::DeviceMemory {
 public:
  explicit AgentMemory(Agent& agent) : agent_(agent) {}
  [[nodiscard]] std::string name() const override { return agent_.ask<std::string>(Request::name); }
  [[nodiscard]] std::string sysfs_device() const override {
    return agent_.ask<std::string>(Request::sysfs_device);
  }
  [[nodiscard]] Bytes granularity() const override {
    return agent_.ask<Bytes>(Request::granularity);
  }
  Result<memory::DevicePointer> allocate(Bytes size) override {
    return agent_.ask<Result<memory::DevicePointer>>(Request::allocate, size);
  }
  Status free(memory::DevicePointer pointer) override {
    return agent_.ask<Status>(Request::free, pointer);
  }
  [[nodiscard]] std::optional<memory::PointerInfo> query(
      memory::DevicePointer pointer) const override {
    return agent_.ask<std::optional<memory::PointerInfo>>(Request::query, pointer);
  }
  memory::Stream create_stream() override { return {}; }
  void destroy_stream(memory::Stream) override {}
  Status copy_in(memory::DevicePointer to, const void* from, Bytes size, memory::Stream) override {
    const auto* begin = static_cast<const std::byte*>(from);
    return agent_.ask<Status>(Request::copy_in, to,
                              std::vector<std::byte>(begin, begin + size.count));
  }
  Status copy_out(void* to, memory::DevicePointer from, Bytes size, memory::Stream) override {
    const auto bytes = agent_.ask<Result<std::vector<std::byte>>>(Request::copy_out, from, size);
    if (bytes.ok() && size.count > 0) std::memcpy(to, bytes.value().data(), bytes.value().size());
    return bytes.ok() ? Status() : bytes.status();
  }
  Status copy_within(memory::DevicePointer to, memory::DevicePointer from, Bytes size,
                     memory::Stream) override {
    return agent_.ask<Status>(Request::copy_within, to, from, size);
  }
  Status fill(memory::DevicePointer to, std::uint8_t value, Bytes size, memory::Stream) override {
    return agent_.ask<Status>(Request::fill, to, value, size);
  }
  Status reduce(memory::DevicePointer, memory::DevicePointer, std::uint64_t, memory::ElementType,
                memory::Stream) override {
    return {Cause::invalid, "not through an agent"};
  }
  Result<memory::Event> record(memory::Stream) override { return memory::Event{}; }
  Result<bool> done(memory::Event) override { return true; }
  Status synchronize(memory::Stream) override { return {}; }
  Result<memory::Exported> export_range(memory::DevicePointer, Bytes) override {
    return Status(Cause::invalid, "not through an agent");
  }
  Status flush(memory::DevicePointer pointer, Bytes size) override {
    return agent_.ask<Status>(Request::flush, pointer, size);
  }
  [[nodiscard]] bool needs_flush() const override { return true; }
  [[nodiscard]] memory::MoverBytes moved() const override {
    return agent_.ask<memory::MoverBytes>(Request::moved);
  }
  std::uint64_t on_free(FreeListener) override { return 0; }
  [[nodiscard]] bool hears_every_free() const override { return false; }
  void forget_listener(std::uint64_t) override {}

 private:
  Agent& agent_;
};

}  // namespace

Agent::Agent(std::string management, std::string nic)
    : management_(std::move(management)), nic_(std::move(nic)) {
  auto stream = transport::connect(SetUp::tcp, management_, port, Duration{60});
  if (!stream.ok()) throw InputError(stream.status().text());
  stream_ = std::move(stream.value());
}

void Agent::send(const std::vector<std::byte>& bytes) {
  if (Status sent = send_message(*stream_, bytes, on_wait); !sent.ok())
    throw InputError(sent.text());
}

std::vector<std::byte> Agent::exchange(const std::vector<std::byte>& request) {
  send(request);
  auto answer = receive_message(*stream_, Duration{60}, on_wait);
  if (!answer.ok()) throw InputError(answer.status().text());
  return std::move(answer.value());
}

std::shared_ptr<memory::DeviceMemory> Agent::make_end(const MemoryChoice& memory,
                                                      const TransportOptions& options) {
  const auto error = ask<std::string>(Request::make_end, memory, options);
  if (!error.empty()) throw InputError(error);
  return std::make_shared<AgentMemory>(*this);
}

std::pair<std::unique_ptr<ByteStream>, std::uint64_t> Agent::connect(bool over_management) {
  // The other side accepts while we connect.
  Writer writer;
  put(writer, Request::connect);
  send(writer.bytes());
  auto stream = transport::connect(SetUp::tcp, over_management ? management_ : nic_, transport_port,
                                   Duration{30});
  const auto answer = receive_message(*stream_, Duration{60}, on_wait);
  if (!answer.ok()) throw InputError(answer.status().text());
  Reader reader(answer.value());
  const auto number = get<std::uint64_t>(reader);
  if (!stream.ok()) throw InputError(stream.status().text());
  return {std::move(stream.value()), number};
}

void Agent::die() {
  Writer writer;
  put(writer, Request::die);
  send(writer.bytes());
}

std::string run_here(const std::string& command) {
  std::string said;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen((command + " 2>&1").c_str(), "r"), pclose);
  std::array<char, 4096> part{};
  while (pipe != nullptr) {
    const std::size_t count = fread(part.data(), 1, part.size(), pipe.get());
    if (count == 0) break;
    said.append(part.data(), count);
  }
  return said;
}

}  // namespace gdr::transport
