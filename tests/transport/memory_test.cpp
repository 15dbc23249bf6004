// What single backends do beyond the contract: traps, faults, the driver's differences.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/common/error.hpp"
#include "src/memory/arithmetic.hpp"
#include "src/memory/backends.hpp"

namespace gdr::memory {
namespace {

TEST(FakeMemoryDeathTest, ACpuAccessNamesThePointerAndTheBackend) {
  FakeOptions options;
  options.index = 3;
  const auto memory = make_fake_memory(options);
  const auto pointer = memory->allocate(Bytes{100}).value();
  auto* forbidden = reinterpret_cast<volatile int*>(pointer.address + 8);
  EXPECT_DEATH(*forbidden = 1, "the CPU touched 0x[0-9a-f]+, which is memory of the device fake3");
}

std::string refusal(const DeviceMemory&, const Result<Exported>& exported) {
  return exported.ok() ? "none" : exported.status().to_string();
}

TEST(FakeMemory, RefusesAsItIsTold) {
  FakeOptions options;
  options.faults.largest_registration = Bytes{1U << 20U};
  options.faults.bar_window = Bytes{(1U << 20U) + (64U << 10U)};
  const auto memory = make_fake_memory(options);
  const auto base = memory->allocate(Bytes{4U << 20U}).value();
  const auto text = [&](std::uint64_t offset, std::uint64_t size) {
    return refusal(*memory, memory->export_range(base + Bytes{offset}, Bytes{size}));
  };
  EXPECT_NE(text(0, 2U << 20U).find("the driver registers at most 1MiB"), std::string::npos)
      << text(0, 2U << 20U);
  EXPECT_NE(text(0, 100).find("the range is not of whole granules of 64KiB"), std::string::npos);
  EXPECT_NE(text(4096, 64U << 10U).find("whole granules"), std::string::npos);
  {
    const auto first = memory->export_range(base, Bytes{1U << 20U});
    ASSERT_TRUE(first.ok());
    EXPECT_NE(text(1U << 20U, 128U << 10U).find("1MiB of the BAR window of 1088KiB are taken"),
              std::string::npos)
        << text(1U << 20U, 128U << 10U);
    EXPECT_EQ(text(1U << 20U, 64U << 10U), "none") << "what is left of the window";
  }
  EXPECT_EQ(text(0, 1U << 20U), "none") << "the window is free again";
}

TEST(FakeMemory, WithoutPeerMemoryTheAddressHasNoPages) {
  FakeOptions options;
  options.faults.peer_memory = false;
  options.faults.dma_buf = false;
  const auto memory = make_fake_memory(options);
  const auto base = memory->allocate(Bytes{1}).value();
  const auto exported = memory->export_range(base, memory->granularity());
  ASSERT_TRUE(exported.ok());
  EXPECT_EQ(exported.value().host_address, base.address)
      << "the device pointer, which no CPU can read";
  EXPECT_FALSE(exported.value().dma_buf.has_value());
  EXPECT_EQ(exported.value().no_dma_buf, "the driver exports no dma-buf");
}

TEST(FakeMemory, ADmaBufHoldsTheBytes) {
  const auto memory = make_fake_memory({});
  (void)memory->allocate(Bytes{1}).value();
  const auto base = memory->allocate(Bytes{100}).value();
  ASSERT_TRUE(memory->fill(base, 0x42, Bytes{100}, {}).ok());
  const auto exported = memory->export_range(base, memory->granularity());
  const auto& dma_buf = *exported.value().dma_buf;
  void* mapped = mmap(nullptr, 65536, PROT_READ, MAP_SHARED, dma_buf.fd.get(),
                      static_cast<off_t>(dma_buf.offset.count));
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(static_cast<const char*>(mapped)[99], 0x42);
  munmap(mapped, 65536);
}

TEST(FakeMemory, AReadWithoutFlushIsStaleForTheShareThatWasAsked) {
  for (const double share : {0.0, 0.5, 1.0}) {
    FakeOptions options;
    options.faults.stale_reads = share;
    const auto memory = make_fake_memory(options);
    const auto base = memory->allocate(Bytes{1U << 20U}).value();
    auto* nic = reinterpret_cast<std::uint8_t*>(
        *memory->export_range(base, Bytes{1U << 20U}).value().host_address);
    std::memset(nic, 1, 1U << 20U);
    std::vector<std::uint8_t> seen(1U << 20U);
    ASSERT_TRUE(memory->copy_out(seen.data(), base, Bytes{seen.size()}, {}).ok());
    const auto old = static_cast<double>(std::count(seen.begin(), seen.end(), 0)) /
                     static_cast<double>(seen.size());
    EXPECT_NEAR(old, share, share == 0.5 ? 0.15 : 0.0);
    ASSERT_TRUE(memory->flush(base, Bytes{1U << 20U}).ok());
    ASSERT_TRUE(memory->copy_out(seen.data(), base, Bytes{seen.size()}, {}).ok());
    EXPECT_EQ(std::count(seen.begin(), seen.end(), 0), 0);
  }
}

TEST(FakeMemory, SlowCopiesAreNotDoneAtOnce) {
  FakeOptions options;
  options.faults.copy_delay = 2;
  const auto memory = make_fake_memory(options);
  const auto base = memory->allocate(Bytes{16}).value();
  std::uint8_t back = 0;
  ASSERT_TRUE(memory->fill(base, 7, Bytes{16}, {}).ok());
  ASSERT_TRUE(memory->copy_out(&back, base, Bytes{1}, {}).ok());
  const Event event = memory->record({}).value();
  EXPECT_FALSE(memory->done(event).value());
  EXPECT_EQ(back, 0);
  EXPECT_TRUE(memory->done(event).value());
  EXPECT_EQ(back, 7);
}

TEST(FakeMemory, OptionsThatCannotBeAreRefused) {
  FakeOptions options;
  options.granularity = Bytes{3000};
  EXPECT_THROW(make_fake_memory(options), InputError);
  for (const char* text : {"", "gpu", "fake:", "fake:x", "fake:256", "host:0", "bar:-1"})
    EXPECT_THROW(make_memory(text), InputError) << text;
  EXPECT_EQ(make_memory("fake:12")->name(), "fake12");
  EXPECT_EQ(make_memory("host")->name(), "host");
}

TEST(Arithmetic, EveryHalfAndBfloat16SurvivesTheWayThroughFloat) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto b = static_cast<std::uint16_t>(bits);
    const bool half_nan = (b & 0x7c00U) == 0x7c00U && (b & 0x3ffU) != 0;
    if (half_nan) {
      ASSERT_TRUE(std::isnan(half_to_float(b)) &&
                  std::isnan(half_to_float(float_to_half(half_to_float(b)))))
          << bits;
    } else {
      ASSERT_EQ(float_to_half(half_to_float(b)), b);
    }
    const float value = bfloat16_to_float(b);
    ASSERT_TRUE(std::isnan(value) || float_to_bfloat16(value) == b) << bits;
  }
  EXPECT_EQ(float_to_half(65519.9F), 0x7bff);
  EXPECT_EQ(float_to_half(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_half(0x1p-25F), 0) << "halfway to the smallest: the even one";
  EXPECT_EQ(float_to_half(0x1.8p-25F), 1);
  EXPECT_EQ(float_to_half(0x1.ffcp-15F), 0x0400 - 1 + 1) << "rounds up into the normal numbers";
}

/// The stub's switches, through a handle of its own to the same library.
int stub(const char* name, int value = 0) {
  void* library = dlopen(GDR_STUB_CUDA, RTLD_NOW);
  const auto call = reinterpret_cast<int (*)(const char*, int)>(dlsym(library, "gdr_stub_cuda"));
  const int result = call(name, value);
  dlclose(library);
  return result;
}

TEST(CudaMemory, ReleasesEverything) {
  const auto keep = make_cuda_memory(0, GDR_STUB_CUDA);
  const int before = stub("live");
  {
    const auto memory = make_cuda_memory(0, GDR_STUB_CUDA);
    const auto base = memory->allocate(Bytes{100}).value();
    (void)memory->create_stream();
    (void)memory->record({}).value();
    ASSERT_TRUE(memory->reduce(base, base, 1, ElementType::int32, {}).ok());
    EXPECT_GT(stub("live"), before + 3);
  }
  EXPECT_EQ(stub("live"), before);
}

TEST(CudaMemory, TakesWhatTheDriverHas) {
  const auto memory = make_cuda_memory(0, GDR_STUB_CUDA);
  const auto base = memory->allocate(Bytes{100}).value();
  EXPECT_TRUE(memory->export_range(base, memory->granularity()).value().dma_buf.has_value());
  stub("dma_buf", 0);
  const auto without = memory->export_range(base, memory->granularity());
  EXPECT_FALSE(without.value().dma_buf.has_value());
  EXPECT_NE(without.value().no_dma_buf.find("exports no dma-buf"), std::string::npos);
  EXPECT_EQ(without.value().host_address, base.address);
  stub("dma_buf", 1);

  const int flushes = stub("flushes");
  ASSERT_TRUE(memory->flush(base, Bytes{100}).ok());
  EXPECT_EQ(stub("flushes"), flushes + 1);
  stub("flush", 0);
  ASSERT_TRUE(memory->flush(base, Bytes{100}).ok()) << "a read over the bus instead";
  EXPECT_EQ(stub("flushes"), flushes + 1);
  stub("flush", 1);
}

TEST(CudaMemory, NeedsNoFlushWhereTheGpuKeepsWritesInOrder) {
  const auto holder = make_cuda_memory(0, GDR_STUB_CUDA);  // keeps the stub loaded
  for (const auto& [ordering, needed] : {std::pair{0, true}, {100, false}, {200, false}}) {
    stub("ordering", ordering);
    EXPECT_EQ(make_cuda_memory(0, GDR_STUB_CUDA)->needs_flush(), needed) << ordering;
  }
  stub("ordering", 0);
}

TEST(CudaMemory, MemoryOfOthersHasANumberToo) {
  const auto memory = make_cuda_memory(0, GDR_STUB_CUDA);
  const auto other = make_cuda_memory(0, GDR_STUB_CUDA);
  const auto base = other->allocate(Bytes{100}).value();
  const auto numbered = memory->query(base);
  stub("buffer_id", 0);  // CUDA_ERROR_INVALID_VALUE, as for memory that was mapped by hand
  const auto by_base = memory->query(base);
  stub("buffer_id", 1);
  ASSERT_TRUE(numbered && by_base);
  EXPECT_NE(numbered->allocation, 0U);
  EXPECT_EQ(by_base->allocation, base.address | (std::uint64_t{1} << 63U));
}

TEST(CudaMemory, SaysWhatIsMissing) {
  try {
    make_cuda_memory(0, "libnothing-of-this-name.so.1");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("libnothing-of-this-name.so.1"), std::string::npos)
        << error.what();
  }
  EXPECT_THROW(make_cuda_memory(1, GDR_STUB_CUDA), InputError) << "the stub has one GPU";
  EXPECT_THROW(make_cuda_memory(0, "libm.so.6"), InputError);
}

}  // namespace
}  // namespace gdr::memory
