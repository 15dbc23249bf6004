// Every operation on every path: over the double, where one thread runs both sides, and between two
// guests (guests/main.cpp).
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "src/common/error.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

struct Setting {
  std::string name;
  std::function<void(PairOptions&)> change;
};
std::ostream& operator<<(std::ostream& out, const Setting& setting) { return out << setting.name; }

std::function<void(PairOptions&)> by_path(TransportPath path) {
  return [path](PairOptions& options) {
    options.both([&](TransportOptions& side) { side.path = path; });
  };
}

std::vector<Setting> plain_settings() {
  return {{"gdr", by_path(TransportPath::gdr)},
          {"staged", by_path(TransportPath::staged)},
          {"tcp", by_path(TransportPath::tcp)},
          {"gdr_four_queue_pairs",
           [](PairOptions& o) {
             by_path(TransportPath::gdr)(o);
             o.both([](TransportOptions& s) { s.queue_pairs = 4; });
           }},
          {"staged_four_queue_pairs",
           [](PairOptions& o) {
             by_path(TransportPath::staged)(o);
             o.both([](TransportOptions& s) { s.queue_pairs = 4; });
           }},
          {"gdr_two_nics",
           [](PairOptions& o) {
             by_path(TransportPath::gdr)(o);
             o.nics_a = {"a0", "a1"};
             o.nics_b = {"b0", "b1"};
           }},
          {"gdr_two_nics_against_one",
           [](PairOptions& o) {
             by_path(TransportPath::gdr)(o);
             o.nics_a = {"a0", "a1"};
           }},
          {"gdr_small_messages",
           [](PairOptions& o) {
             by_path(TransportPath::gdr)(o);
             o.both([](TransportOptions& s) { s.largest_message = Bytes{5000}; });
           }},
          {"gdr_checked",
           [](PairOptions& o) {
             by_path(TransportPath::gdr)(o);
             o.both([](TransportOptions& s) { s.check = true; });
           }},
          {"staged_checked",
           [](PairOptions& o) {
             by_path(TransportPath::staged)(o);
             o.both([](TransportOptions& s) { s.check = true; });
           }},
          {"tcp_checked",
           [](PairOptions& o) {
             by_path(TransportPath::tcp)(o);
             o.both([](TransportOptions& s) { s.check = true; });
           }},
          {"staged_small_chunks", [](PairOptions& o) {
             by_path(TransportPath::staged)(o);
             o.both([](TransportOptions& s) {
               s.chunk = Bytes{in_guests() ? 2000U : 256U};
               s.depth = 2;
             });
           }}};
}

/// The same with other memory.
std::vector<Setting> other_memories() {
  const auto with = [](TransportPath path, const std::function<void(MemoryChoice&)>& change) {
    return [=](PairOptions& options) {
      by_path(path)(options);
      options.memory(change);
    };
  };
  return {{"gdr_stale_reads",
           with(TransportPath::gdr, [](MemoryChoice& memory) { memory.faults.stale_reads = 1; })},
          {"staged_slow_copies",
           with(TransportPath::staged, [](MemoryChoice& memory) { memory.faults.copy_delay = 3; })},
          {"staged_host", with(TransportPath::staged, [](MemoryChoice& memory) {
             memory.kind = MemoryChoice::Kind::host;
           })}};
}

/// Settings for the double only: the CUDA stub, whose memory no real NIC registers, and a network
/// that loses packets.
std::vector<Setting> settings_of_the_double() {
  return {
      {"gdr_cuda_stub",
       [](PairOptions& o) {
         by_path(TransportPath::gdr)(o);
         o.memory([](MemoryChoice& memory) { memory.kind = MemoryChoice::Kind::cuda_stub; });
       }},
      {"gdr_lossy",
       [](PairOptions& o) {
         by_path(TransportPath::gdr)(o);
         o.fabric.faults.loss = 0.03;
         o.fabric.faults.reorder = 0.05;
         o.fabric.faults.full = 0.2;
       }},
      {"staged_lossy",
       [](PairOptions& o) {
         by_path(TransportPath::staged)(o);
         o.fabric.faults.loss = 0.03;
         o.fabric.faults.corrupt = 0.02;
         o.fabric.faults.full = 0.2;
       }},
  };
}

/// In guests: every setting over memory of the process; the paths and what gdr can do again over
/// the guest's fake GPU.
std::vector<Setting> settings() {
  std::vector<Setting> all = plain_settings();
  const std::size_t plain = all.size();
  for (Setting& setting : other_memories()) all.push_back(std::move(setting));
  if (!in_guests())
    for (Setting& setting : settings_of_the_double()) all.push_back(std::move(setting));
  for (std::size_t i = 0; i < plain && in_guests(); ++i) {
    const std::string& name = all[i].name;
    if (name != "staged" && name != "tcp" && !name.starts_with("gdr")) continue;
    all.push_back({all[i].name + "_bar", [change = all[i].change](PairOptions& options) {
                     change(options);
                     options.memory(
                         [](MemoryChoice& memory) { memory.kind = MemoryChoice::Kind::bar; });
                   }});
  }
  return all;
}

class EveryPath : public testing::TestWithParam<Setting> {
 protected:
  void SetUp() override {
    PairOptions options;
    GetParam().change(options);
    pair_ = std::make_unique<Pair>(options);
    ASSERT_TRUE(pair_->a.connection->status().ok()) << pair_->a.connection->status().to_string();
    ASSERT_TRUE(pair_->b.connection->status().ok()) << pair_->b.connection->status().to_string();
  }
  void TearDown() override {
    if (pair_ == nullptr) return;
    const auto fabric = pair_->fabric;
    pair_.reset();
    if (fabric) {
      EXPECT_EQ(live_objects(*fabric), 0U) << "regions, queue pairs or devices are left";
    }
  }
  std::unique_ptr<Pair> pair_;
};

constexpr std::size_t sizes[] = {0, 1, 7, 4096, 65536 + 3, 1000001};

TEST_P(EveryPath, AWriteArrivesWithItsImmediate) {
  End& a = pair_->a;
  End& b = pair_->b;
  const auto from = a.allocate(1100000);
  const auto to = b.allocate(1100000);
  const RemoteRange range = pair_->share(b, a, 7, to, 1100000);
  unsigned seed = 0;
  for (const std::size_t size : sizes) {
    const auto bytes = End::pattern(size, ++seed);
    b.put(to, std::vector<std::uint8_t>(1100000, 0xee));
    a.put(from + Bytes{3}, bytes);
    const OperationResult done =
        pair_->finish(a, a.connection->write(from + Bytes{3}, range, Bytes{5}, Bytes{size}, seed));
    ASSERT_TRUE(done.status.ok()) << done.status.to_string();
    std::optional<Arrival> arrival;
    ASSERT_TRUE(pair_->run_until([&] { return (arrival = b.connection->arrival()).has_value(); }));
    EXPECT_EQ(arrival->immediate, seed);
    EXPECT_EQ(b.get(to + Bytes{5}, size), bytes) << size << " bytes";
    EXPECT_EQ(b.get(to + Bytes{5 + size}, 1)[0], 0xee) << "the byte behind them";
    EXPECT_FALSE(b.connection->arrival().has_value()) << "told twice";
  }
}

TEST_P(EveryPath, AReadFetches) {
  End& a = pair_->a;
  End& b = pair_->b;
  const auto to = a.allocate(1100000);
  const auto from = b.allocate(1100000);
  const RemoteRange range = pair_->share(b, a, 1, from, 1100000);
  unsigned seed = 10;
  for (const std::size_t size : sizes) {
    const auto bytes = End::pattern(size, ++seed);
    b.put(from + Bytes{11}, bytes);
    const OperationResult done =
        pair_->finish(a, a.connection->read(to + Bytes{2}, range, Bytes{11}, Bytes{size}));
    ASSERT_TRUE(done.status.ok()) << done.status.to_string();
    EXPECT_EQ(a.get(to + Bytes{2}, size), bytes) << size << " bytes";
  }
}

TEST_P(EveryPath, ASendMeetsAReceiveInOrder) {
  End& a = pair_->a;
  End& b = pair_->b;
  const auto from = a.allocate(3000000);
  const auto to = b.allocate(3000000);
  std::vector<Result<OperationId>> sends;
  std::vector<Result<OperationId>> receives;
  std::vector<std::vector<std::uint8_t>> expected;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    expected.push_back(End::pattern(size, static_cast<unsigned>(size) + 1));
    a.put(from + Bytes{at}, expected.back());
    if (at % 2 == 0) receives.push_back(b.connection->receive(to + Bytes{at}, Bytes{size + 10}));
    sends.push_back(a.connection->send(from + Bytes{at}, Bytes{size}));
    if (at % 2 != 0) receives.push_back(b.connection->receive(to + Bytes{at}, Bytes{size + 10}));
    at += size + 10;
  }
  at = 0;
  for (std::size_t i = 0; i < sends.size(); ++i) {
    const OperationResult received = pair_->finish(b, receives[i]);
    ASSERT_TRUE(received.status.ok()) << received.status.to_string();
    EXPECT_EQ(received.size, Bytes{sizes[i]});
    EXPECT_TRUE(pair_->finish(a, sends[i]).status.ok());
    EXPECT_EQ(b.get(to + Bytes{at}, sizes[i]), expected[i]);
    at += sizes[i] + 10;
  }
}

TEST_P(EveryPath, AtomicsGiveTheOldValue) {
  End& a = pair_->a;
  End& b = pair_->b;
  const auto at = b.allocate(4096);
  const RemoteRange range = pair_->share(b, a, 1, at, 4096);
  std::uint64_t value = 40;
  ASSERT_TRUE(b.memory->copy_in(at + Bytes{8}, &value, Bytes{8}, {}).ok());
  ASSERT_TRUE(b.memory->synchronize({}).ok());
  EXPECT_EQ(pair_->finish(a, a.connection->fetch_add(range, Bytes{8}, 2)).old_value, 40U);
  EXPECT_EQ(pair_->finish(a, a.connection->compare_swap(range, Bytes{8}, 42, 99)).old_value, 42U);
  EXPECT_EQ(pair_->finish(a, a.connection->compare_swap(range, Bytes{8}, 42, 7)).old_value, 99U);
  EXPECT_EQ(a.connection->fetch_add(range, Bytes{4}, 1).status().cause(), Cause::invalid)
      << "not aligned";
  ASSERT_TRUE(b.memory->flush(at, Bytes{16}).ok());
  const auto bytes = b.get(at + Bytes{8}, 8);
  std::memcpy(&value, bytes.data(), 8);
  EXPECT_EQ(value, 99U);
}

TEST_P(EveryPath, ManyOperationsBothWaysAllArrive) {
  End& a = pair_->a;
  End& b = pair_->b;
  constexpr std::size_t part = 20000;
  constexpr std::size_t count = 40;
  const auto memory_a = a.allocate(2 * part * count);
  const auto memory_b = b.allocate(2 * part * count);
  const RemoteRange in_b = pair_->share(b, a, 1, memory_b, 2 * part * count);
  const RemoteRange in_a = pair_->share(a, b, 1, memory_a, 2 * part * count);
  const auto bytes_a = End::pattern(part * count, 1);
  const auto bytes_b = End::pattern(part * count, 2);
  a.put(memory_a, bytes_a);
  b.put(memory_b, bytes_b);
  std::vector<Result<OperationId>> writes;
  std::vector<Result<OperationId>> reads;
  for (std::size_t i = 0; i < count; ++i) {
    writes.push_back(a.connection->write(memory_a + Bytes{i * part}, in_b,
                                         Bytes{(count + i) * part}, Bytes{part},
                                         static_cast<std::uint32_t>(i)));
    reads.push_back(b.connection->write(memory_b + Bytes{i * part}, in_a, Bytes{(count + i) * part},
                                        Bytes{part}));
  }
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_TRUE(pair_->finish(a, writes[i]).status.ok());
    ASSERT_TRUE(pair_->finish(b, reads[i]).status.ok());
  }
  std::set<std::uint32_t> immediates;
  pair_->run_until([&] {
    while (const auto arrival = b.connection->arrival())
      EXPECT_TRUE(immediates.insert(arrival->immediate).second) << "twice";
    return immediates.size() == count;
  });
  EXPECT_EQ(immediates.size(), count);
  // Writes without an immediate are not reported to A, so flush before reading.
  ASSERT_TRUE(a.memory->flush(memory_a, Bytes{2 * part * count}).ok());
  EXPECT_EQ(b.get(memory_b + Bytes{part * count}, part * count), bytes_a);
  EXPECT_EQ(a.get(memory_a + Bytes{part * count}, part * count), bytes_b);
}

INSTANTIATE_TEST_SUITE_P(Paths, EveryPath, testing::ValuesIn(settings()),
                         [](const testing::TestParamInfo<Setting>& setting) {
                           return setting.param.name;
                         });

}  // namespace
}  // namespace gdr::transport
