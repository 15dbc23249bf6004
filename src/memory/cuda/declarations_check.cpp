// Checks our declarations against cuda.h; compiled where CUDA Toolkit is installed, linked to
// nothing.
#include <cuda.h>

#include <type_traits>

#include "src/memory/cuda/driver.hpp"

namespace gdr::memory::cuda {
namespace {

/// The same to the calling convention: both pointers, or both numbers (or enumerations) of one
/// size.
template <typename Ours, typename Theirs>
constexpr bool alike = std::is_pointer_v<Ours> == std::is_pointer_v<Theirs> &&
                       sizeof(Ours) == sizeof(Theirs);

template <typename Ours, typename Theirs>
struct SameCall : std::false_type {};
template <typename R1, typename... A1, typename R2, typename... A2>
requires(sizeof...(A1) == sizeof...(A2)) struct SameCall<R1(A1...), R2(A2...)>
    : std::bool_constant<alike<R1, R2> && (alike<A1, A2> && ...)> {
};

// cuda.h renames calls to their newest form by macros, so that #name must not be expanded before it
// is looked up.
#define GDR_CUDA_COMPARE(member, name, signature) \
  static_assert(SameCall<signature, decltype(::name)>::value, #name);
GDR_CUDA_CALLS(GDR_CUDA_COMPARE)
GDR_CUDA_OPTIONAL_CALLS(GDR_CUDA_COMPARE)

static_assert(success == CUDA_SUCCESS && invalid_value == CUDA_ERROR_INVALID_VALUE &&
              out_of_memory == CUDA_ERROR_OUT_OF_MEMORY && not_ready == CUDA_ERROR_NOT_READY);
static_assert(attribute_gpu_direct_rdma == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED);
static_assert(attribute_flush_options == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS);
static_assert(attribute_writes_ordering == CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING);
static_assert(ordering_owner == CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER);
static_assert(attribute_dma_buf == CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED);
static_assert(flush_by_host == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST);
static_assert(flush_target_current_context == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX);
static_assert(flush_to_owner == CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER);
static_assert(pointer_sync_memops == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS &&
              pointer_buffer_id == CU_POINTER_ATTRIBUTE_BUFFER_ID);
static_assert(handle_dma_buf == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD);
static_assert(event_disable_timing == CU_EVENT_DISABLE_TIMING &&
              stream_non_blocking == CU_STREAM_NON_BLOCKING);
static_assert(sizeof(Pointer) == sizeof(CUdeviceptr) && sizeof(Device) == sizeof(CUdevice) &&
              sizeof(Error) == sizeof(CUresult));

}  // namespace
}  // namespace gdr::memory::cuda
