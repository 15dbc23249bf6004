// Many things go wrong at once, from a seed: every run ends with the right bytes or a named error,
// in time.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>

#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U) {}
  std::uint64_t below(std::uint64_t limit) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33U) % limit;
  }
  bool one_in(std::uint64_t count) { return below(count) == 0; }
  double percent(std::uint64_t limit) { return static_cast<double>(below(limit)) / 100; }
  Duration microseconds(std::uint64_t limit) { return {static_cast<double>(below(limit)) * 1e-6}; }

 private:
  std::uint64_t state_;
};

constexpr Duration limit{5};

struct Trial {
  explicit Trial(std::uint64_t chosen) : seed(chosen), random(chosen) {}
  std::uint64_t seed;
  Random random;
  bool failed_by_name = false;

  PairOptions options();
  std::string transfer(Pair& pair);
  /// Empty: right bytes or a named error in time; else what was wrong.
  std::string result();

 private:
  std::string named(const std::string& wrong = "") {
    failed_by_name = true;
    return wrong;
  }
  void choose_faults(DoubleFaults& faults);
};

void Trial::choose_faults(DoubleFaults& faults) {
  faults.seed = seed;
  if (random.one_in(2)) faults.loss = random.percent(8);
  if (random.one_in(2)) faults.reorder = random.percent(10);
  if (random.one_in(3)) faults.corrupt = random.percent(5);
  if (random.one_in(3)) faults.full = 0.3;
  if (random.one_in(4))
    faults.outages = {
        {random.one_in(2) ? "a0" : "b0", random.microseconds(3000), random.microseconds(80000)}};
  if (random.one_in(6)) faults.deaths = {{"b0", random.microseconds(3000)}};
  if (random.one_in(5)) faults.refuse_dma_buf = EOPNOTSUPP;
}

PairOptions Trial::options() {
  PairOptions options;
  choose_faults(options.fabric.faults);
  const auto path = static_cast<TransportPath>(random.below(3));
  const bool check = random.one_in(4);
  const bool refuse = random.one_in(8);
  const auto queue_pairs = static_cast<unsigned>(1 + random.below(3));
  options.both([&](TransportOptions& side) {
    if (!refuse || path != TransportPath::gdr) side.path = path;
    side.level = NicDistance::sys;
    side.check = check;
    side.queue_pairs = queue_pairs;
    side.chunk = Bytes{16384};
    side.limit = limit;
    side.timeout = 10;  // 4.2 ms
  });
  options.memory([&](MemoryChoice& memory) {
    memory.capacity = Bytes{16U << 20U};
    memory.faults.stale_reads = 0.5;
    memory.faults.seed = seed;
    memory.faults.copy_delay = static_cast<unsigned>(seed % 3);
  });
  if (refuse) options.memory_a.faults.largest_registration = Bytes{100000};
  return options;
}

std::string Trial::transfer(Pair& pair) {
  EndConnection& a = *pair.a.connection;
  EndConnection& b = *pair.b.connection;
  const auto both_know = [&] { return !a.status().ok() && !b.status().ok(); };
  if (!a.status().ok() || !b.status().ok())
    return named(pair.run_until(both_know, Duration{20}) ? "" : "one side alone gave up");
  const std::size_t size = 1 + random.below(400000);
  const auto from = pair.a.allocate(size);
  const auto to = pair.b.allocate(size);
  const auto bytes = End::pattern(size, static_cast<unsigned>(seed));
  pair.a.put(from, bytes);
  if (!b.share(1, to, Bytes{size}).ok()) return named();
  if (!pair.run_until([&] { return a.shared(1).has_value() || !a.status().ok(); }))
    return "a share never arrived";
  if (!a.status().ok()) return named();
  const auto operation = a.write(from, *a.shared(1), Bytes{0}, Bytes{size}, 77);
  const std::uint64_t spoil = random.below(10);
  for (std::uint64_t i = random.below(60); i > 0; --i) pair.step();
  if (spoil == 0) (void)pair.b.memory->free(to);
  if (spoil == 1) (void)pair.a.memory->free(from);
  if (spoil == 2) b.close();
  if (!operation.ok()) return named();
  const Duration asked = pair.now();
  std::optional<OperationResult> done;
  if (!pair.run_until([&] { return (done = a.test(operation.value())).has_value(); }, Duration{20}))
    return "a write never ended";
  if ((pair.now() - asked).seconds > limit.seconds * 1.1) return "a write ended after its limit";
  if (!done->status.ok())
    return named(done->status.text().empty() ? "an error without a word" : "");
  std::optional<Arrival> arrival;
  if (!pair.run_until([&] { return (arrival = b.arrival()).has_value() || !b.status().ok(); },
                      Duration{20}))
    return "B was never told";
  if (arrival && spoil != 0 && pair.b.get(to, size) != bytes) return "wrong bytes";
  return b.arrival() ? "told twice" : "";
}

std::string Trial::result() {
  std::shared_ptr<DoubleFabric> fabric;
  std::string wrong;
  {
    Pair pair(options());
    fabric = pair.fabric;
    wrong = transfer(pair);
  }
  return wrong.empty() && live_objects(*fabric) != 0 ? "something is not released" : wrong;
}

TEST(Campaign, EveryRunEndsWithTheRightBytesOrANamedErrorInTime) {
  const char* chosen = std::getenv("GDR_CAMPAIGN_SEED");
  const std::uint64_t first = chosen != nullptr ? std::stoull(chosen) : 1;
  const std::uint64_t count = chosen != nullptr ? 1 : 400;
  std::uint64_t failed = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Trial run(seed);
    EXPECT_EQ(run.result(), "") << "seed " << seed << ": GDR_CAMPAIGN_SEED=" << seed
                                << " repeats it";
    if (run.failed_by_name) ++failed;
  }
  if (chosen != nullptr) return;
  std::printf("%lu of %lu runs ended with a named error\n", static_cast<unsigned long>(failed),
              static_cast<unsigned long>(count));
  EXPECT_GT(failed, 30U) << "the faults are too mild to test anything";
  EXPECT_LT(failed, 300U) << "hardly anything works";
}

}  // namespace
}  // namespace gdr::transport
