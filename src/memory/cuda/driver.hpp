#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>

/// The part of CUDA's driver API that is used here, declared by ourselves so that it compiles
/// everywhere. Where CUDA Toolkit is installed, declarations_check.cpp checks every line against
/// cuda.h.
namespace gdr::memory::cuda {

using Error = int;  // CUresult
using Device = int;
using Pointer = unsigned long long;  // CUdeviceptr
using ContextHandle = void*;
using StreamHandle = void*;
using EventHandle = void*;
using ModuleHandle = void*;
using FunctionHandle = void*;

constexpr Error success = 0;
constexpr Error invalid_value = 1;
constexpr Error out_of_memory = 2;
constexpr Error not_ready = 600;
constexpr int attribute_gpu_direct_rdma = 116;  // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED
constexpr int attribute_flush_options =
    117;  // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS
constexpr int attribute_writes_ordering =
    118;                             // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING
constexpr int ordering_owner = 100;  // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER: from here on the
                                     // GPU itself sees them in order
constexpr int attribute_dma_buf = 124;  // CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED
constexpr int flush_by_host = 1;        // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST
constexpr int flush_target_current_context = 0;
constexpr int flush_to_owner = 100;     // CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER
constexpr int pointer_sync_memops = 6;  // CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
constexpr int pointer_buffer_id = 7;    // CU_POINTER_ATTRIBUTE_BUFFER_ID
constexpr int handle_dma_buf = 1;       // CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD
constexpr unsigned event_disable_timing = 2;
constexpr unsigned stream_non_blocking = 1;

// Each call's name in libcuda is what cuda.h's macros make of it: its newest form.
#define GDR_CUDA_CALLS(CALL)                                                                       \
  CALL(init, cuInit, Error(unsigned))                                                              \
  CALL(error_name, cuGetErrorName, Error(Error, const char**))                                     \
  CALL(device_get, cuDeviceGet, Error(Device*, int))                                               \
  CALL(device_count, cuDeviceGetCount, Error(int*))                                                \
  CALL(device_attribute, cuDeviceGetAttribute, Error(int*, int, Device))                           \
  CALL(device_bus_id, cuDeviceGetPCIBusId, Error(char*, int, Device))                              \
  CALL(context_retain, cuDevicePrimaryCtxRetain, Error(ContextHandle*, Device))                    \
  CALL(context_release, cuDevicePrimaryCtxRelease_v2, Error(Device))                               \
  CALL(context_push, cuCtxPushCurrent_v2, Error(ContextHandle))                                    \
  CALL(context_pop, cuCtxPopCurrent_v2, Error(ContextHandle*))                                     \
  CALL(memory_allocate, cuMemAlloc_v2, Error(Pointer*, std::size_t))                               \
  CALL(memory_free, cuMemFree_v2, Error(Pointer))                                                  \
  CALL(copy_in, cuMemcpyHtoDAsync_v2, Error(Pointer, const void*, std::size_t, StreamHandle))      \
  CALL(copy_out, cuMemcpyDtoHAsync_v2, Error(void*, Pointer, std::size_t, StreamHandle))           \
  CALL(copy_within, cuMemcpyDtoDAsync_v2, Error(Pointer, Pointer, std::size_t, StreamHandle))      \
  CALL(fill, cuMemsetD8Async, Error(Pointer, unsigned char, std::size_t, StreamHandle))            \
  CALL(stream_create, cuStreamCreate, Error(StreamHandle*, unsigned))                              \
  CALL(stream_destroy, cuStreamDestroy_v2, Error(StreamHandle))                                    \
  CALL(stream_synchronize, cuStreamSynchronize, Error(StreamHandle))                               \
  CALL(event_create, cuEventCreate, Error(EventHandle*, unsigned))                                 \
  CALL(event_record, cuEventRecord, Error(EventHandle, StreamHandle))                              \
  CALL(event_query, cuEventQuery, Error(EventHandle))                                              \
  CALL(event_destroy, cuEventDestroy_v2, Error(EventHandle))                                       \
  CALL(pointer_attribute, cuPointerGetAttribute, Error(void*, int, Pointer))                       \
  CALL(set_pointer_attribute, cuPointerSetAttribute, Error(const void*, int, Pointer))             \
  CALL(address_range, cuMemGetAddressRange_v2, Error(Pointer*, std::size_t*, Pointer))             \
  CALL(module_load, cuModuleLoadData, Error(ModuleHandle*, const void*))                           \
  CALL(module_unload, cuModuleUnload, Error(ModuleHandle))                                         \
  CALL(module_function, cuModuleGetFunction, Error(FunctionHandle*, ModuleHandle, const char*))    \
  CALL(launch, cuLaunchKernel,                                                                     \
       Error(FunctionHandle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
             StreamHandle, void**, void**))

// Not in every driver: since CUDA 11.7 and 11.3.
#define GDR_CUDA_OPTIONAL_CALLS(CALL)                               \
  CALL(handle_for_range, cuMemGetHandleForAddressRange,             \
       Error(void*, Pointer, std::size_t, int, unsigned long long)) \
  CALL(flush_writes, cuFlushGPUDirectRDMAWrites, Error(int, int))

/// libcuda, loaded. The optional calls are null where the driver has none.
struct Driver {
#define GDR_CUDA_MEMBER(member, name, signature) std::add_pointer_t<signature> member = nullptr;
  GDR_CUDA_CALLS(GDR_CUDA_MEMBER)
  GDR_CUDA_OPTIONAL_CALLS(GDR_CUDA_MEMBER)
#undef GDR_CUDA_MEMBER

  /// Throws InputError naming the library and what it lacks.
  explicit Driver(const std::string& library);
  [[nodiscard]] std::string name_of(Error error) const;

 private:
  struct Close {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Close> handle_;
};

}  // namespace gdr::memory::cuda
