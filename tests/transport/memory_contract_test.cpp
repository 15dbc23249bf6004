// What every backend of DeviceMemory must do.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <numeric>

#include "src/memory/arithmetic.hpp"
#include "tests/transport/backends_under_test.hpp"

namespace gdr::memory {

std::vector<BackendUnderTest> backends_under_test() {
  std::vector<BackendUnderTest> backends;
  backends.push_back({"host", [] { return make_host_memory(); }, false, ""});
  backends.push_back({"fake", [] { return make_fake_memory({}); }, true, ""});
  backends.push_back({"fake_with_slow_copies",
                      [] {
                        FakeOptions options;
                        options.faults.copy_delay = 3;
                        return make_fake_memory(options);
                      },
                      true, ""});
  backends.push_back({"fake_with_stale_reads",
                      [] {
                        FakeOptions options;
                        options.faults.stale_reads = 1;
                        return make_fake_memory(options);
                      },
                      true, ""});
  backends.push_back({"cuda_stub", [] { return make_cuda_memory(0, GDR_STUB_CUDA); }, true, ""});
  const bool guest = std::filesystem::exists("/dev/gdr-gpu0");
  backends.push_back({"bar", [] { return make_bar_memory(0); }, true,
                      guest ? "" : "there is no /dev/gdr-gpu0: it is in guests of gdr emulate"});
  return backends;
}

namespace {

class MemoryContract : public testing::TestWithParam<BackendUnderTest> {
 protected:
  void SetUp() override {
    if (!GetParam().skip.empty()) GTEST_SKIP() << GetParam().skip;
    memory_ = GetParam().make();
  }

  DevicePointer allocate(Bytes size) {
    auto pointer = memory_->allocate(size);
    EXPECT_TRUE(pointer.ok()) << pointer.status().to_string();
    return pointer.value();
  }
  void put(DevicePointer to, const std::vector<std::uint8_t>& bytes) {
    ASSERT_TRUE(memory_->copy_in(to, bytes.data(), Bytes{bytes.size()}, {}).ok());
    ASSERT_TRUE(memory_->synchronize({}).ok());
  }
  std::vector<std::uint8_t> get(DevicePointer from, std::size_t size) {
    std::vector<std::uint8_t> bytes(size, 0xee);
    EXPECT_TRUE(memory_->copy_out(bytes.data(), from, Bytes{size}, {}).ok());
    EXPECT_TRUE(memory_->synchronize({}).ok());
    return bytes;
  }

  std::unique_ptr<DeviceMemory> memory_;
};

std::vector<std::uint8_t> pattern(std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + i / 251);
  return bytes;
}

TEST_P(MemoryContract, BytesComeBackFromAnyOffset) {
  const DevicePointer base = allocate(Bytes{100000});
  for (const std::uint64_t offset : {0U, 1U, 4095U, 65537U}) {
    const auto bytes = pattern(30001);
    put(base + Bytes{offset}, bytes);
    EXPECT_EQ(get(base + Bytes{offset}, bytes.size()), bytes) << "offset " << offset;
  }
}

TEST_P(MemoryContract, CopiesWithinAndFillsTouchNothingElse) {
  const DevicePointer a = allocate(Bytes{5000});
  const DevicePointer b = allocate(Bytes{5000});
  put(a, pattern(5000));
  ASSERT_TRUE(memory_->fill(b, 0x11, Bytes{5000}, {}).ok());
  ASSERT_TRUE(memory_->copy_within(b + Bytes{100}, a + Bytes{7}, Bytes{3000}, {}).ok());
  ASSERT_TRUE(memory_->fill(b + Bytes{4000}, 0x22, Bytes{1}, {}).ok());
  std::vector<std::uint8_t> expected(5000, 0x11);
  const auto source = pattern(5000);
  std::copy_n(source.begin() + 7, 3000, expected.begin() + 100);
  expected[4000] = 0x22;
  EXPECT_EQ(get(b, 5000), expected);
}

TEST_P(MemoryContract, SumsRoundToNearestEven) {
  const DevicePointer into = allocate(Bytes{4096});
  const DevicePointer from = allocate(Bytes{4096});
  const auto sum_of = [&](ElementType type, auto a, auto b) {
    std::vector<std::uint8_t> bytes(sizeof(a));
    std::memcpy(bytes.data(), &a, sizeof(a));
    put(into + Bytes{sizeof(a)}, bytes);
    std::memcpy(bytes.data(), &b, sizeof(b));
    put(from, bytes);
    EXPECT_TRUE(memory_->reduce(into + Bytes{sizeof(a)}, from, 1, type, {}).ok());
    const auto result = get(into + Bytes{sizeof(a)}, sizeof(a));
    std::memcpy(&a, result.data(), sizeof(a));
    return a;
  };
  EXPECT_EQ(sum_of(ElementType::float32, 1.5F, 2.25F), 3.75F);
  EXPECT_EQ(sum_of(ElementType::int32, 2147483647, 1), -2147483647 - 1);
  const auto half = [&](float a, float b) {
    return half_to_float(sum_of(ElementType::float16, float_to_half(a), float_to_half(b)));
  };
  EXPECT_EQ(half(2048, 1), 2048);  // halfway between 2048 and 2050: the even one
  EXPECT_EQ(half(2048, 3), 2052);  // halfway between 2050 and 2052: the even one
  const auto bfloat = [&](float a, float b) {
    return bfloat16_to_float(
        sum_of(ElementType::bfloat16, float_to_bfloat16(a), float_to_bfloat16(b)));
  };
  EXPECT_EQ(bfloat(256, 1), 256);
  EXPECT_EQ(bfloat(256, 3), 260);
}

TEST_P(MemoryContract, ManyElementsAreAllAdded) {
  const DevicePointer into = allocate(Bytes{40000});
  const DevicePointer from = allocate(Bytes{40000});
  std::vector<std::uint32_t> numbers(10000);
  std::iota(numbers.begin(), numbers.end(), 5U);
  ASSERT_TRUE(memory_->copy_in(into, numbers.data(), Bytes{40000}, {}).ok());
  ASSERT_TRUE(memory_->copy_in(from, numbers.data(), Bytes{40000}, {}).ok());
  ASSERT_TRUE(memory_->reduce(into, from, 10000, ElementType::int32, {}).ok());
  std::vector<std::uint32_t> result(10000);
  ASSERT_TRUE(memory_->copy_out(result.data(), into, Bytes{40000}, {}).ok());
  ASSERT_TRUE(memory_->synchronize({}).ok());
  for (std::size_t i = 0; i < result.size(); ++i) ASSERT_EQ(result[i], 2 * numbers[i]) << i;
}

TEST_P(MemoryContract, AnEventIsDoneWhenWhatIsBeforeItIs) {
  const DevicePointer base = allocate(Bytes{4096});
  const Stream stream = memory_->create_stream();
  const auto bytes = pattern(4096);
  std::vector<std::uint8_t> back(4096);
  ASSERT_TRUE(memory_->copy_in(base, bytes.data(), Bytes{4096}, stream).ok());
  ASSERT_TRUE(memory_->copy_out(back.data(), base, Bytes{4096}, stream).ok());
  const auto event = memory_->record(stream);
  ASSERT_TRUE(event.ok());
  int asked = 0;
  for (;; ++asked) {
    ASSERT_LT(asked, 100000);
    const auto done = memory_->done(event.value());
    ASSERT_TRUE(done.ok());
    if (done.value()) break;
  }
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(memory_->done(event.value()).status().cause(), Cause::invalid)
      << "an event that was done is gone";
  memory_->destroy_stream(stream);
  EXPECT_EQ(memory_->fill(base, 0, Bytes{1}, stream).cause(), Cause::invalid)
      << "the stream is gone";
}

TEST_P(MemoryContract, RangesOutsideAnAllocationAreRefused) {
  const DevicePointer base = allocate(Bytes{memory_->granularity()});
  const Bytes size = memory_->granularity();
  std::vector<std::uint8_t> bytes(size.count + 1);
  EXPECT_EQ(memory_->copy_in(base, bytes.data(), Bytes{size.count + 1}, {}).cause(),
            Cause::invalid);
  EXPECT_EQ(memory_->copy_out(bytes.data(), base + Bytes{1}, size, {}).cause(), Cause::invalid);
  EXPECT_EQ(memory_->copy_within(base, base + Bytes{1}, size, {}).cause(), Cause::invalid);
  EXPECT_EQ(memory_->copy_within(base + Bytes{1}, base, size, {}).cause(), Cause::invalid);
  EXPECT_EQ(memory_->fill(DevicePointer{64}, 0, Bytes{1}, {}).cause(), Cause::invalid);
  EXPECT_EQ(memory_->reduce(base, base, size.count / 4 + 1, ElementType::int32, {}).cause(),
            Cause::invalid);
  EXPECT_EQ(memory_->reduce(base, base, ~std::uint64_t{0} / 2, ElementType::int32, {}).cause(),
            Cause::invalid);
  EXPECT_EQ(memory_->export_range(base, Bytes{size.count * 2}).status().cause(), Cause::invalid);
  EXPECT_EQ(memory_->flush(base, Bytes{size.count + 1}).cause(), Cause::invalid);
  EXPECT_TRUE(memory_->copy_in(base, bytes.data(), Bytes{0}, {}).ok());
}

TEST_P(MemoryContract, APointerTellsItsAllocation) {
  const Bytes size{memory_->granularity().count * 2};
  const DevicePointer a = allocate(size);
  const auto info = memory_->query(a + Bytes{size.count - 1});
  ASSERT_TRUE(info.has_value());
  EXPECT_EQ(info->base, a);
  EXPECT_EQ(info->size, size);
  EXPECT_FALSE(memory_->query(DevicePointer{64}).has_value());
  ASSERT_TRUE(memory_->free(a).ok());
  EXPECT_FALSE(memory_->query(a).has_value());
  EXPECT_EQ(memory_->free(a).cause(), Cause::invalid) << "freed twice";
  const DevicePointer again = allocate(size);
  EXPECT_NE(memory_->query(again)->allocation, info->allocation)
      << "numbers are not used twice, addresses are";
  EXPECT_EQ(memory_->free(again + Bytes{1}).cause(), Cause::invalid)
      << "not where an allocation starts";
}

TEST_P(MemoryContract, FreedMemoryCanBeHadAgain) {
  // More than any backend has in total.
  for (int i = 0; i < 9; ++i) {
    const DevicePointer base = allocate(Bytes{std::uint64_t{128} << 20U});
    ASSERT_TRUE(memory_->free(base).ok());
  }
  EXPECT_EQ(memory_->allocate(Bytes{std::uint64_t{1} << 62U}).status().cause(),
            Cause::out_of_memory);
}

TEST_P(MemoryContract, ListenersHearOfFreedMemoryWhileItIsThereAndNobodyGetsAtItAnyMore) {
  const DevicePointer base = allocate(Bytes{4096});
  const auto number = memory_->query(base)->allocation;
  std::vector<std::uint64_t> heard;
  std::vector<DevicePointer> others;
  const auto id = memory_->on_free([&](const PointerInfo& info) {
    EXPECT_FALSE(memory_->query(info.base).has_value());
    EXPECT_FALSE(memory_->export_range(info.base, info.size).ok());
    EXPECT_EQ(memory_->free(info.base).cause(), Cause::invalid);
    const auto other = memory_->allocate(info.size);
    EXPECT_TRUE(other.ok() && other.value() != info.base) << "its place is taken still";
    others.push_back(other.value());
    heard.push_back(info.allocation);
  });
  ASSERT_TRUE(memory_->free(base).ok());
  EXPECT_EQ(heard, std::vector<std::uint64_t>{number});
  memory_->forget_listener(id);
  for (const DevicePointer other : others) EXPECT_TRUE(memory_->free(other).ok());
  ASSERT_TRUE(memory_->free(allocate(Bytes{1})).ok());
  EXPECT_EQ(heard.size(), 1U);
}

TEST_P(MemoryContract, CountsWhatMovedTheBytes) {
  const DevicePointer base = allocate(Bytes{8192});
  put(base, pattern(1000));
  get(base, 300);
  ASSERT_TRUE(memory_->copy_within(base + Bytes{4096}, base, Bytes{50}, {}).ok());
  ASSERT_TRUE(memory_->fill(base, 1, Bytes{4096}, {}).ok());
  ASSERT_TRUE(memory_->synchronize({}).ok());
  const MoverBytes expected = GetParam().copy_engine
                                  ? MoverBytes{Bytes{1000}, Bytes{300}, Bytes{50}, Bytes{0}}
                                  : MoverBytes{{}, {}, {}, Bytes{1350}};
  EXPECT_EQ(memory_->moved(), expected);
}

TEST_P(MemoryContract, AnExportedRangeIsTheMemoryItself) {
  const Bytes size = memory_->granularity() * 2;
  const DevicePointer base = allocate(size);
  auto exported = memory_->export_range(base + memory_->granularity(), memory_->granularity());
  ASSERT_TRUE(exported.ok()) << exported.status().to_string();
  ASSERT_TRUE(exported.value().host_address.has_value()) << exported.value().no_host_address;
  // The CPU acts as the NIC: what it writes at that address is in device memory after a flush.
  auto* nic = reinterpret_cast<std::uint8_t*>(*exported.value().host_address);
  std::memset(nic, 0x5a, 100);
  ASSERT_TRUE(memory_->flush(base + memory_->granularity(), Bytes{100}).ok());
  EXPECT_EQ(get(base + memory_->granularity(), 100), std::vector<std::uint8_t>(100, 0x5a));
  put(base + memory_->granularity(), {1, 2, 3});
  EXPECT_EQ(nic[2], 3) << "a NIC reads what the device wrote";
}

INSTANTIATE_TEST_SUITE_P(Backends, MemoryContract, testing::ValuesIn(backends_under_test()),
                         [](const testing::TestParamInfo<BackendUnderTest>& backend) {
                           return backend.param.name;
                         });

}  // namespace
}  // namespace gdr::memory
