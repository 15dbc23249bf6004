#include "tests/transport/pair.hpp"

#include <algorithm>

#include "tests/transport/guests/agent.hpp"
#include "tests/transport/unflushed_memory.hpp"

namespace gdr::transport {

std::shared_ptr<memory::DeviceMemory> make_memory(const MemoryChoice& choice, unsigned index) {
  switch (choice.kind) {
    case MemoryChoice::Kind::bar:
      return memory::make_bar_memory(0, choice.faults);
    case MemoryChoice::Kind::host:
      return memory::make_host_memory();
    case MemoryChoice::Kind::cuda_stub:
      return memory::make_cuda_memory(0, GDR_STUB_CUDA);
    case MemoryChoice::Kind::fake:
      break;
  }
  memory::FakeOptions options;
  options.index = index;
  options.capacity = choice.capacity;
  options.faults = choice.faults;
  return memory::make_fake_memory(options);
}

std::vector<std::string> End::log() const { return agent != nullptr ? agent->log() : lines; }

std::vector<std::uint8_t> End::pattern(std::size_t size, unsigned seed) {
  std::vector<std::uint8_t> bytes(size);
  std::uint32_t state = seed * 2654435761U + 1;
  for (auto& byte : bytes) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::uint8_t>(state >> 24U);
  }
  return bytes;
}

void End::put(memory::DevicePointer to, const std::vector<std::uint8_t>& bytes) const {
  ASSERT_TRUE(memory->copy_in(to, bytes.data(), Bytes{bytes.size()}, {}).ok());
  ASSERT_TRUE(memory->synchronize({}).ok());
}

std::vector<std::uint8_t> End::get(memory::DevicePointer from, std::size_t size) const {
  std::vector<std::uint8_t> bytes(size);
  EXPECT_TRUE(memory->copy_out(bytes.data(), from, Bytes{size}, {}).ok());
  EXPECT_TRUE(memory->synchronize({}).ok());
  return bytes;
}

std::string nic_name(const std::string& name) {
  return in_guests() ? "rxe" + name.substr(1) : name;
}

namespace {

std::vector<std::string> nic_names(const std::vector<std::string>& names) {
  std::vector<std::string> result;
  for (const std::string& name : names) result.push_back(nic_name(name));
  return result;
}

/// A guest uses all its NICs and may be very slow.
TransportOptions for_guest(TransportOptions options, const std::vector<std::string>& nics) {
  for (NicChoice& nic : options.nics) nic.name = nic_name(nic.name);
  if (options.nics.empty())
    for (const std::string& name : nic_names(nics)) options.nics.push_back({name, {}, {}});
  options.timeout = std::max(options.timeout, 16U);  // 0.27 s
  if (options.limit == TransportOptions{}.limit) options.limit = Duration{30};
  options.setup_limit = Duration{30};
  return options;
}

}  // namespace

Pair::Pair(PairOptions options) : over_management_(options.set_up_over_management) {
  if (in_guests()) {
    set_up_here(a, for_guest(options.a, options.nics_a), {}, options.memory_a, 0);
    b.agent = guest_world;
    b.memory = guest_world->make_end(options.memory_b, for_guest(options.b, options.nics_b));
    guest_world->on_wait = [this] { (void)a.transport->progress(); };
  } else {
    fabric = make_double_fabric(options.fabric);
    hide_flush_ = options.hide_flush;
    set_up_here(a, options.a, options.nics_a, options.memory_a, 0);
    set_up_here(b, options.b, options.nics_b, options.memory_b, 1);
  }
  std::tie(a.connection, b.connection) = connect();
  if (options.wait_ready)
    run_until(
        [&] { return a.connection->ready().has_value() && b.connection->ready().has_value(); });
}

Pair::~Pair() {
  if (!in_guests()) return;
  // Close both ends at once: a peer that has gone is noticed late.
  guest_world->on_wait = nullptr;
  a.connection.reset();
  b.connection.reset();
  try {
    guest_world->drop_end();
  } catch (const InputError&) {
    // It was killed.
  }
}

void Pair::set_up_here(End& end, TransportOptions options, const std::vector<std::string>& nics,
                       const MemoryChoice& memory, unsigned index) {
  end.memory = make_memory(memory, index);
  if (hide_flush_) end.memory = std::make_shared<UnflushedMemory>(end.memory);
  if (!options.log) options.log = [&end](const std::string& line) { end.lines.push_back(line); };
  verbs_ = in_guests() ? make_ibverbs() : make_double(fabric, nics);
  end.transport = std::make_unique<Transport>(verbs_, end.memory, options);
}

std::pair<std::unique_ptr<EndConnection>, std::unique_ptr<EndConnection>> Pair::connect() {
  if (in_guests()) {
    auto [stream, number] = guest_world->connect(over_management_);
    auto here = std::make_unique<EndConnection>(a.transport->open(std::move(stream), true));
    return {std::move(here), std::make_unique<EndConnection>(*guest_world, number)};
  }
  auto streams = stream_pair();
  auto first = std::make_unique<EndConnection>(a.transport->open(std::move(streams.first), true));
  return {std::move(first),
          std::make_unique<EndConnection>(b.transport->open(std::move(streams.second), false))};
}

bool Pair::step() {
  bool any = a.transport->progress();
  if (b.transport) any = b.transport->progress() || any;
  if (!any) verbs_->idle(100);
  return any;
}

bool Pair::run_until(const std::function<bool()>& holds, Duration limit) {
  const Duration end = now() + limit;
  while (!holds()) {
    if (now() > end) return false;
    step();
  }
  return true;
}

OperationResult Pair::finish(End& end, const Result<OperationId>& operation) {
  if (!operation.ok()) return {operation.status(), {}, 0};
  std::optional<OperationResult> result;
  EXPECT_TRUE(run_until([&] {
    return (result = end.connection->test(operation.value())).has_value();
  })) << "not finished within 60 s";
  return result.value_or(OperationResult{{Cause::timed_out, "the test gave up"}, {}, 0});
}

RemoteRange Pair::share(End& owner, End& user, std::uint64_t tag, memory::DevicePointer pointer,
                        std::size_t size) {
  const Status shared = owner.connection->share(tag, pointer, Bytes{size});
  EXPECT_TRUE(shared.ok()) << shared.to_string();
  EXPECT_TRUE(run_until([&] { return user.connection->shared(tag).has_value(); }));
  return user.connection->shared(tag).value_or(RemoteRange{});
}

}  // namespace gdr::transport
