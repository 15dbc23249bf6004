// The tables of a transport and its connections: registrations and operations.
#include <gtest/gtest.h>

#include <map>

#include "src/memory/backends.hpp"
#include "src/transport/connection/operation_table.hpp"
#include "src/transport/engine/registration_cache.hpp"
#include "src/transport/verbs/double.hpp"

namespace gdr::transport {
namespace {

TEST(RegistrationCache, RegistersOnceAndDropsWhatIsUnusedWhenTheWindowIsFull) {
  memory::FakeOptions fake;
  fake.capacity = Bytes{16U << 20U};
  fake.faults.bar_window = Bytes{2U << 20U};
  const auto memory = memory::make_fake_memory(fake);
  const auto fabric = make_double_fabric({});
  const auto verbs = make_double(fabric, {"nic"});
  const auto device = std::move(verbs->open("nic").value());
  const std::size_t before = live_objects(*fabric);
  RegistrationCache cache({device.get()}, *memory);
  const auto a = memory->allocate(Bytes{1U << 20U}).value();
  const auto b = memory->allocate(Bytes{1U << 20U}).value();
  const auto c = memory->allocate(Bytes{1U << 20U}).value();
  auto held = cache.get(a + Bytes{5}, Bytes{10}).value();
  EXPECT_EQ(cache.get(a, Bytes{1U << 20U}).value(), held) << "the whole allocation was registered";
  EXPECT_TRUE(cache.get(b, Bytes{1}).ok());
  EXPECT_EQ(live_objects(*fabric), before + 2);
  EXPECT_TRUE(cache.get(c, Bytes{1}).ok()) << "b gives way";
  EXPECT_EQ(live_objects(*fabric), before + 2);
  const auto also_held = cache.get(c, Bytes{1}).value();
  const auto full = cache.get(b, Bytes{1U << 20U});
  EXPECT_EQ(full.status().cause(), Cause::registration_refused);
  EXPECT_NE(full.status().text().find("of the BAR window of 2MiB are taken"), std::string::npos)
      << full.status().text();
  held.reset();
  cache.drop(memory->query(a)->allocation);
  EXPECT_EQ(live_objects(*fabric), before + 1);
  EXPECT_EQ(cache.get({64}, Bytes{1}).status().cause(), Cause::invalid);
}

TEST(RegistrationCache, KeepsRangesOfAnAllocationThatIsNotRegisteredWhole) {
  memory::FakeOptions fake;
  fake.faults.largest_registration = Bytes{256U << 10U};
  const auto memory = memory::make_fake_memory(fake);
  const auto fabric = make_double_fabric({});
  const auto verbs = make_double(fabric, {"nic", "other"});
  const auto nic = std::move(verbs->open("nic").value());
  const auto other = std::move(verbs->open("other").value());
  RegistrationCache cache({nic.get(), other.get()}, *memory);
  const std::uint64_t granule = memory->granularity().count;
  const auto first = memory->allocate(Bytes{granule}).value();
  const auto large = memory->allocate(Bytes{1U << 20U}).value();
  const std::uint64_t number = memory->query(large)->allocation;
  EXPECT_EQ(cache.find(number, large, Bytes{1}), nullptr) << "nothing is registered yet";
  EXPECT_TRUE(cache.get(first, Bytes{1}).ok());
  const auto wide = cache.get(large, Bytes{2 * granule}).value();
  EXPECT_EQ(cache.size(), 1U)
      << "the first, which nobody uses, gave way: the window might have been full";
  const auto held = cache.get(first, Bytes{1}).value();
  const auto narrow = cache.get(large + Bytes{2 * granule}, Bytes{1}).value();
  EXPECT_EQ(wide->keys.size(), 2U) << "one per NIC";
  EXPECT_NE(wide->keys[0].remote, wide->keys[1].remote);
  EXPECT_EQ(cache.find(number, large + Bytes{granule + 1}, Bytes{granule - 1}), wide);
  EXPECT_EQ(cache.find(number, large + Bytes{granule + 1}, Bytes{granule}), nullptr)
      << "reaches into the next one";
  EXPECT_EQ(cache.find(number, large + Bytes{3 * granule - 1}, Bytes{1}), narrow);
  EXPECT_EQ(cache.find(number, large + Bytes{3 * granule}, Bytes{1}), nullptr);
  EXPECT_EQ(cache.find(number + 1, large, Bytes{1}), nullptr)
      << "the same place, another allocation";
  cache.drop(number);
  EXPECT_EQ(cache.size(), 1U) << "the other allocation's";
  EXPECT_EQ(cache.get(first, Bytes{granule}).value(), held);
}

/// A range that is always refused does not evict the others repeatedly.
TEST(RegistrationCache, ARefusedRangeCostsTheOthersTheirPlacesOnce) {
  memory::FakeOptions fake;
  fake.faults.largest_registration = Bytes{128U << 10U};
  const auto memory = memory::make_fake_memory(fake);
  const auto fabric = make_double_fabric({});
  const auto verbs = make_double(fabric, {"nic"});
  const auto nic = std::move(verbs->open("nic").value());
  RegistrationCache cache({nic.get()}, *memory);
  const auto good = memory->allocate(Bytes{64U << 10U}).value();
  const auto large = memory->allocate(Bytes{1U << 20U}).value();
  EXPECT_FALSE(cache.get(large, Bytes{1U << 20U}).ok());
  const RegisteredRange* const kept = cache.get(good, Bytes{1}).value().get();
  const RegisteredRange* const a = cache.get(large, Bytes{100}).value().get();
  const RegisteredRange* const b = cache.get(large + Bytes{512U << 10U}, Bytes{100}).value().get();
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(cache.get(large, Bytes{1U << 20U}).ok());
    EXPECT_EQ(cache.get(good, Bytes{1}).value().get(), kept);
    EXPECT_EQ(cache.get(large, Bytes{100}).value().get(), a);
    EXPECT_EQ(cache.get(large + Bytes{512U << 10U}, Bytes{100}).value().get(), b);
  }
}

TEST(RegistrationCache, MemoryThatIsBeingFreedIsNotRegistered) {
  memory::FakeOptions fake;
  const auto memory = memory::make_fake_memory(fake);
  const auto fabric = make_double_fabric({});
  const auto verbs = make_double(fabric, {"nic"});
  const auto nic = std::move(verbs->open("nic").value());
  RegistrationCache cache({nic.get()}, *memory);
  const auto range = memory->allocate(Bytes{4096}).value();
  Status asked;
  const auto listener = memory->on_free([&](const memory::PointerInfo& info) {
    cache.drop(info.allocation);
    asked = cache.get(info.base, Bytes{1}).status();  // by another thread, say
  });
  EXPECT_TRUE(cache.get(range, Bytes{1}).ok());
  EXPECT_TRUE(memory->free(range).ok());
  EXPECT_EQ(asked.cause(), Cause::invalid);
  EXPECT_EQ(cache.size(), 0U);
  memory->forget_listener(listener);
}

Operation small(std::uint64_t address) { return {Write{}, Phase::issuing, {address}, Bytes{}}; }

TEST(OperationTable, FindsWhatIsUnderWayAndKeepsResultsUntilTheyAreTaken) {
  OperationTable table;
  EXPECT_EQ(table.oldest(), 0U);
  EXPECT_EQ(table.find(0), nullptr);
  const std::uint64_t a = table.add(small(1));
  const std::uint64_t b = table.add(small(2));
  EXPECT_LT(a, b);
  EXPECT_EQ(table.find(a)->local.address, 1U);
  EXPECT_EQ(table.oldest(), a);
  EXPECT_FALSE(table.take(a));
  table.finish(a, {Status(Cause::timed_out, "late"), Bytes{7}, 9});
  EXPECT_EQ(table.find(a), nullptr);
  EXPECT_EQ(table.under_way(), 1U);
  EXPECT_EQ(table.oldest(), b);
  const auto result = table.take(a);
  ASSERT_TRUE(result);
  EXPECT_EQ(result->status.text(), "late");
  EXPECT_EQ(result->size, Bytes{7});
  EXPECT_FALSE(table.take(a)) << "it was taken";
  table.drop(b);
  EXPECT_FALSE(table.take(b)) << "nobody waits for it";
  EXPECT_EQ(table.under_way(), 0U);
}

TEST(OperationTable, DatesEachOperationOnce) {
  OperationTable table;
  const std::uint64_t a = table.add(small(1));
  const std::uint64_t gone = table.add(small(2));
  table.drop(gone);
  table.set_deadline_of_new(Duration{5});
  const std::uint64_t b = table.add(small(3));
  table.set_deadline_of_new(Duration{7});
  table.set_deadline_of_new(Duration{9});
  EXPECT_EQ(table.find(a)->deadline, Duration{5});
  EXPECT_EQ(table.find(b)->deadline, Duration{7});
}

/// Long-lived operations and untaken results keep their places while thousands of others come and
/// go.
TEST(OperationTable, NumbersNeverMeet) {
  OperationTable table;
  std::map<std::uint64_t, std::uint64_t> living;
  std::map<std::uint64_t, std::uint64_t> results;
  std::uint64_t last = 0;
  std::uint64_t random = 1;
  for (std::uint64_t i = 1; i <= 200000; ++i) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t dice = random >> 33U;
    if (dice % 100 < 34 && living.size() < 300) {
      const std::uint64_t number = table.add(small(i));
      ASSERT_GT(number, last);
      last = number;
      living.emplace(number, i);
    } else if (dice % 100 < 67 && !living.empty()) {
      const auto which = dice % 3 == 0 ? living.begin() : std::prev(living.end());
      table.finish(which->first, {{}, Bytes{which->second}, 0});
      results.insert(*which);
      living.erase(which);
    } else if (!results.empty() && (dice % 7 != 0 || results.size() > 500)) {
      const auto which = dice % 3 == 0 ? results.begin() : std::prev(results.end());
      const auto taken = table.take(which->first);
      ASSERT_TRUE(taken);
      ASSERT_EQ(taken->size.count, which->second);
      results.erase(which);
    }
    ASSERT_EQ(table.under_way(), living.size());
    ASSERT_EQ(table.oldest(), living.empty() ? 0 : living.begin()->first);
  }
  std::size_t seen = 0;
  table.each([&](const Operation&) { ++seen; });
  EXPECT_EQ(seen, living.size());
  for (const auto& [number, address] : living)
    EXPECT_EQ(table.find(number)->local.address, address);
  for (const auto& [number, address] : results) EXPECT_EQ(table.take(number)->size.count, address);
}

}  // namespace
}  // namespace gdr::transport
