#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "memory/backends.hpp"
#include "transport/transport.hpp"
#include "transport/verbs/double.hpp"

namespace gdr::transport {

/// One side of a pair: its memory, its transport, its connection, what it logged.
struct End {
  std::vector<std::string> log;  // outlives what writes into it
  std::shared_ptr<memory::DeviceMemory> memory;
  std::unique_ptr<Transport> transport;
  std::unique_ptr<Connection> connection;

  memory::DevicePointer allocate(std::size_t size) const { return memory->allocate(Bytes{size}).value(); }
  /// Bytes from a seed.
  static std::vector<std::uint8_t> pattern(std::size_t size, unsigned seed) {
    std::vector<std::uint8_t> bytes(size);
    std::uint32_t state = seed * 2654435761U + 1;
    for (auto& byte : bytes) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<std::uint8_t>(state >> 24U);
    }
    return bytes;
  }
  void put(memory::DevicePointer to, const std::vector<std::uint8_t>& bytes) const {
    ASSERT_TRUE(memory->copy_in(to, bytes.data(), Bytes{bytes.size()}, {}).ok());
    ASSERT_TRUE(memory->synchronize({}).ok());
  }
  [[nodiscard]] std::vector<std::uint8_t> get(memory::DevicePointer from, std::size_t size) const {
    std::vector<std::uint8_t> bytes(size);
    EXPECT_TRUE(memory->copy_out(bytes.data(), from, Bytes{size}, {}).ok());
    EXPECT_TRUE(memory->synchronize({}).ok());
    return bytes;
  }
};

struct PairOptions {
  DoubleOptions fabric;
  TransportOptions a;
  TransportOptions b;
  std::vector<std::string> nics_a{"a0"};
  std::vector<std::string> nics_b{"b0"};
  std::function<std::shared_ptr<memory::DeviceMemory>(unsigned)> memory = [](unsigned index) {
    memory::FakeOptions options;
    options.index = index;
    options.capacity = Bytes{std::uint64_t{256} << 20U};
    return std::shared_ptr<memory::DeviceMemory>(memory::make_fake_memory(options));
  };
  bool wait_ready = true;

  void both(const std::function<void(TransportOptions&)>& change) {
    change(a);
    change(b);
  }
};

/// Two hosts on the double, both moved by this thread.
class Pair {
 public:
  explicit Pair(const PairOptions& options) : fabric(make_double_fabric(options.fabric)) {
    setup(a, options.a, options.nics_a, options.memory, 0);
    setup(b, options.b, options.nics_b, options.memory, 1);
    auto streams = stream_pair();
    a.connection = a.transport->open(std::move(streams.first), true);
    b.connection = b.transport->open(std::move(streams.second), false);
    if (options.wait_ready) run_until([&] { return a.connection->ready().has_value() && b.connection->ready().has_value(); });
  }

  bool step() {
    bool any = a.transport->progress();
    any = b.transport->progress() || any;
    if (!any) verbs_->idle();
    return any;
  }
  /// False when it did not become true within `limit` of simulated time.
  bool run_until(const std::function<bool()>& holds, Duration limit = Duration{60}) {
    const Duration end = now(*fabric) + limit;
    while (!holds()) {
      if (now(*fabric) > end) return false;
      step();
    }
    return true;
  }
  Finished finish(End& end, const Result<OperationId>& operation) {
    if (!operation.ok()) return {operation.status(), {}, 0};
    std::optional<Finished> result;
    EXPECT_TRUE(run_until([&] { return (result = end.connection->test(operation.value())).has_value(); })) << "not finished within 60 s";
    return result.value_or(Finished{{Cause::timed_out, "the test gave up"}, {}, 0});
  }
  RemoteRange share(End& owner, End& user, std::uint64_t tag, memory::DevicePointer pointer, std::size_t size) {
    const Status shared = owner.connection->share(tag, pointer, Bytes{size});
    EXPECT_TRUE(shared.ok()) << shared.to_string();
    EXPECT_TRUE(run_until([&] { return user.connection->shared(tag).has_value(); }));
    return user.connection->shared(tag).value_or(RemoteRange{});
  }

  std::shared_ptr<DoubleFabric> fabric;
  End a;
  End b;

 private:
  void setup(End& end, TransportOptions options, const std::vector<std::string>& nics,
             const std::function<std::shared_ptr<memory::DeviceMemory>(unsigned)>& memory, unsigned index) {
    end.memory = memory(index);
    if (!options.log) options.log = [&end](const std::string& line) { end.log.push_back(line); };
    auto verbs = make_double(fabric, nics);
    std::shared_ptr<Verbs> shared = std::move(verbs);
    verbs_ = shared;
    end.transport = std::make_unique<Transport>(shared, end.memory, options);
  }
  std::shared_ptr<Verbs> verbs_;
};

}  // namespace gdr::transport
