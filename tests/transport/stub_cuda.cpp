// A libcuda.so.1 for tests: one GPU with one memfd per allocation. Copies run when a stream or
// event is queried, so that a caller who does not wait sees old bytes. gdr_stub_cuda() sets what
// differs between real drivers.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "src/memory/arithmetic.hpp"
#include "src/memory/cuda/driver.hpp"

namespace {

using gdr::memory::ElementType;
using gdr::memory::cuda::Error;
using gdr::memory::cuda::Pointer;
constexpr Error invalid_handle = 400;
constexpr Error not_supported = 801;

struct Allocation {
  std::size_t size;
  int fd;
  unsigned long long id;
};
struct StubStream {
  std::deque<std::function<void()>> waiting;
};
struct StubEvent {
  StubStream* stream = nullptr;
  std::size_t left = 0;  // operations of the stream to wait for
};
struct State {
  std::mutex mutex;
  std::map<Pointer, Allocation> allocations;
  StubStream default_stream;
  int contexts_pushed = 0;
  unsigned long long last_id = 0;
  int dma_buf = 1;
  int buffer_id = 1;
  int flush = 1;
  int flushes = 0;
  int ordering = 0;
  int live = 0;  // allocations, streams, events, contexts, modules
};
State state;

StubStream* stream_of(void* handle) {
  return handle == nullptr ? &state.default_stream : static_cast<StubStream*>(handle);
}
void run(StubStream& stream) {
  for (; !stream.waiting.empty(); stream.waiting.pop_front()) stream.waiting.front()();
}
Error queue(void* stream, std::function<void()> work) {
  const std::lock_guard lock(state.mutex);
  if (state.contexts_pushed == 0) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  stream_of(stream)->waiting.push_back(std::move(work));
  return 0;
}
void* at(Pointer pointer) { return reinterpret_cast<void*>(pointer); }

}  // namespace

extern "C" {

// "dma_buf", "buffer_id", "flush", "ordering" set; "flushes", "live" are counters. Returns the
// value before.
int gdr_stub_cuda(const char* name, int value) {
  const std::lock_guard lock(state.mutex);
  int* place = std::strcmp(name, "dma_buf") == 0     ? &state.dma_buf
               : std::strcmp(name, "buffer_id") == 0 ? &state.buffer_id
               : std::strcmp(name, "flush") == 0     ? &state.flush
               : std::strcmp(name, "flushes") == 0   ? &state.flushes
               : std::strcmp(name, "ordering") == 0  ? &state.ordering
                                                     : &state.live;
  const int before = *place;
  if (place != &state.live && place != &state.flushes) *place = value;
  return before;
}

Error cuInit(unsigned flags) { return flags == 0 ? 0 : 1; }
Error cuGetErrorName(Error error, const char** name) {
  *name = error == 1               ? "CUDA_ERROR_INVALID_VALUE"
          : error == 2             ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == not_supported ? "CUDA_ERROR_NOT_SUPPORTED"
                                   : "CUDA_ERROR_UNKNOWN";
  return 0;
}
Error cuDeviceGetCount(int* count) { return *count = 1, 0; }
Error cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
Error cuDeviceGetAttribute(int* value, int attribute, int) {
  const std::lock_guard lock(state.mutex);
  *value = attribute == gdr::memory::cuda::attribute_dma_buf           ? state.dma_buf
           : attribute == gdr::memory::cuda::attribute_flush_options   ? state.flush
           : attribute == gdr::memory::cuda::attribute_writes_ordering ? state.ordering
                                                                       : 1;
  return 0;
}
Error cuDeviceGetPCIBusId(char* text, int size, int) {
  return std::snprintf(text, static_cast<std::size_t>(size), "0000:FE:1F.7"), 0;
}
Error cuDevicePrimaryCtxRetain(void** context, int) { return *context = &state, ++state.live, 0; }
Error cuDevicePrimaryCtxRelease_v2(int) { return --state.live, 0; }
Error cuCtxPushCurrent_v2(void*) {
  const std::lock_guard lock(state.mutex);
  return ++state.contexts_pushed, 0;
}
Error cuCtxPopCurrent_v2(void** context) {
  const std::lock_guard lock(state.mutex);
  return *context = &state, --state.contexts_pushed, 0;
}

Error cuMemAlloc_v2(Pointer* pointer, std::size_t size) {
  const std::lock_guard lock(state.mutex);
  if (size == 0) return 1;
  if (size > (std::size_t{1} << 30U)) return 2;
  const int fd = memfd_create("stub-cuda", MFD_CLOEXEC);
  if (ftruncate(fd, static_cast<off_t>(size)) != 0) return 2;
  // Aligned like GPU memory: mapped over the middle of a larger reservation, which stays as a hole.
  const std::size_t granule = std::size_t{64} << 10U;
  auto* reserved = static_cast<char*>(
      mmap(nullptr, size + granule, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  const std::size_t skip = (granule - reinterpret_cast<std::size_t>(reserved) % granule) % granule;
  void* base = mmap(reserved + skip, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (skip > 0) munmap(reserved, skip);
  if (skip < granule) munmap(reserved + skip + size, granule - skip);
  *pointer = reinterpret_cast<Pointer>(base);
  state.allocations[*pointer] = {size, fd, ++state.last_id};
  ++state.live;
  return 0;
}
Error cuMemFree_v2(Pointer pointer) {
  const std::lock_guard lock(state.mutex);
  const auto found = state.allocations.find(pointer);
  if (found == state.allocations.end()) return 1;
  munmap(at(pointer), found->second.size);
  close(found->second.fd);
  state.allocations.erase(found);
  --state.live;
  return 0;
}
Error cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t size, void* stream) {
  return queue(stream, [=] { std::memcpy(at(to), from, size); });
}
Error cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t size, void* stream) {
  return queue(stream, [=] { std::memcpy(to, at(from), size); });
}
Error cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t size, void* stream) {
  return queue(stream, [=] { std::memmove(at(to), at(from), size); });
}
Error cuMemsetD8Async(Pointer to, unsigned char value, std::size_t size, void* stream) {
  return queue(stream, [=] { std::memset(at(to), value, size); });
}

Error cuStreamCreate(void** stream, unsigned) { return *stream = new StubStream, ++state.live, 0; }
Error cuStreamDestroy_v2(void* stream) {
  return delete static_cast<StubStream*>(stream), --state.live, 0;
}
Error cuStreamSynchronize(void* stream) {
  const std::lock_guard lock(state.mutex);
  return run(*stream_of(stream)), 0;
}
Error cuEventCreate(void** event, unsigned) { return *event = new StubEvent, ++state.live, 0; }
Error cuEventRecord(void* event, void* stream) {
  const std::lock_guard lock(state.mutex);
  return static_cast<StubEvent*>(event)->stream = stream_of(stream),
         static_cast<StubEvent*>(event)->left = 2, 0;
}
Error cuEventQuery(void* handle) {
  const std::lock_guard lock(state.mutex);
  auto* event = static_cast<StubEvent*>(handle);
  if (event->stream == nullptr) return invalid_handle;
  if (--event->left > 0) return gdr::memory::cuda::not_ready;
  return run(*event->stream), 0;
}
Error cuEventDestroy_v2(void* event) {
  return delete static_cast<StubEvent*>(event), --state.live, 0;
}

Error cuPointerGetAttribute(void* value, int attribute, Pointer pointer) {
  const std::lock_guard lock(state.mutex);
  auto found = state.allocations.upper_bound(pointer);
  if (found == state.allocations.begin() || state.buffer_id == 0 ||
      attribute != gdr::memory::cuda::pointer_buffer_id)
    return 1;
  std::memcpy(value, &std::prev(found)->second.id, sizeof(unsigned long long));
  return 0;
}
Error cuPointerSetAttribute(const void*, int attribute, Pointer) {
  return attribute == gdr::memory::cuda::pointer_sync_memops ? 0 : 1;
}
Error cuMemGetAddressRange_v2(Pointer* base, std::size_t* size, Pointer pointer) {
  const std::lock_guard lock(state.mutex);
  auto found = state.allocations.upper_bound(pointer);
  if (found == state.allocations.begin()) return 500;
  --found;
  if (pointer - found->first >= found->second.size) return 500;
  return *base = found->first, *size = found->second.size, 0;
}
Error cuMemGetHandleForAddressRange(void* handle, Pointer pointer, std::size_t, int type,
                                    unsigned long long) {
  const std::lock_guard lock(state.mutex);
  const auto found = state.allocations.find(pointer);
  if (found == state.allocations.end() || type != gdr::memory::cuda::handle_dma_buf) return 1;
  *static_cast<int*>(handle) = fcntl(found->second.fd, F_DUPFD_CLOEXEC, 0);
  return 0;
}
Error cuFlushGPUDirectRDMAWrites(int, int) {
  const std::lock_guard lock(state.mutex);
  return ++state.flushes, 0;
}

Error cuModuleLoadData(void** module, const void* image) {
  if (std::strstr(static_cast<const char*>(image), ".entry gdr_sum_bfloat16") == nullptr) return 1;
  return *module = &state, ++state.live, 0;
}
Error cuModuleUnload(void*) { return --state.live, 0; }
Error cuModuleGetFunction(void** function, void*, const char* name) {
  const std::string text(name);
  static ElementType types[] = {ElementType::float32, ElementType::float16, ElementType::bfloat16,
                                ElementType::int32};
  *function = text == "gdr_sum_float32"    ? &types[0]
              : text == "gdr_sum_float16"  ? &types[1]
              : text == "gdr_sum_bfloat16" ? &types[2]
              : text == "gdr_sum_int32"    ? &types[3]
                                           : nullptr;
  return *function == nullptr ? 500 : 0;
}
Error cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads,
                     unsigned, unsigned, unsigned, void* stream, void** arguments, void**) {
  Pointer a = 0;
  Pointer b = 0;
  std::uint64_t count = 0;
  std::memcpy(&a, arguments[0], 8);
  std::memcpy(&b, arguments[1], 8);
  std::memcpy(&count, arguments[2], 8);
  if (blocks * static_cast<std::uint64_t>(threads) < count) return 1;
  const ElementType type = *static_cast<ElementType*>(function);
  return queue(stream, [=] {
    gdr::memory::add_elements(static_cast<std::byte*>(at(a)), static_cast<std::byte*>(at(b)), count,
                              type);
  });
}

}  // extern "C"
