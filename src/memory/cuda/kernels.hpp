#pragma once

/// Sums for CUDA's loader in PTX: extern "C" void NAME(into, from, count), one element per thread,
/// 256 threads per block. Rounding is that of memory/arithmetic.hpp. PTX ISA 6.0 and sm_60: every
/// GPU that can do GPUDirect RDMA with a current driver accepts it.
namespace gdr::memory::cuda {

#define GDR_PTX_HEAD(NAME)                                                                       \
  ".visible .entry " NAME                                                                        \
  "(.param .u64 a, .param .u64 b, .param .u64 n)\n{\n"                                           \
  ".reg .pred %p<3>;\n.reg .b16 %h<4>;\n.reg .b32 %r<10>;\n.reg .f32 %f<4>;\n.reg .b64 %d<8>;\n" \
  "ld.param.u64 %d1, [a];\nld.param.u64 %d2, [b];\nld.param.u64 %d3, [n];\n"                     \
  "cvta.to.global.u64 %d1, %d1;\ncvta.to.global.u64 %d2, %d2;\n"                                 \
  "mov.u32 %r1, %ctaid.x;\nmov.u32 %r2, %tid.x;\nmul.wide.u32 %d4, %r1, 256;\ncvt.u64.u32 %d5, " \
  "%r2;\nadd.u64 %d4, %d4, %d5;\n"                                                               \
  "setp.ge.u64 %p1, %d4, %d3;\n@%p1 bra done;\n"
#define GDR_PTX_PLACE(SHIFT) \
  "shl.b64 %d6, %d4, " SHIFT ";\nadd.u64 %d1, %d1, %d6;\nadd.u64 %d2, %d2, %d6;\n"
#define GDR_PTX_END "done:\nret;\n}\n"

constexpr const char* sum_kernels =
    ".version 6.0\n.target sm_60\n.address_size 64\n"
    // clang-format off
    GDR_PTX_HEAD("gdr_sum_float32") GDR_PTX_PLACE("2")
    "ld.global.f32 %f1, [%d1];\nld.global.f32 %f2, [%d2];\nadd.rn.f32 %f3, %f1, %f2;\nst.global.f32 [%d1], %f3;\n" GDR_PTX_END
    GDR_PTX_HEAD("gdr_sum_int32") GDR_PTX_PLACE("2")
    "ld.global.u32 %r3, [%d1];\nld.global.u32 %r4, [%d2];\nadd.u32 %r5, %r3, %r4;\nst.global.u32 [%d1], %r5;\n" GDR_PTX_END
    GDR_PTX_HEAD("gdr_sum_float16") GDR_PTX_PLACE("1")
    "ld.global.b16 %h1, [%d1];\nld.global.b16 %h2, [%d2];\ncvt.f32.f16 %f1, %h1;\ncvt.f32.f16 %f2, %h2;\n"
    "add.rn.f32 %f3, %f1, %f2;\ncvt.rn.f16.f32 %h3, %f3;\nst.global.b16 [%d1], %h3;\n" GDR_PTX_END
    // bfloat16 is the upper half of a float; below sm_80 there is no conversion, so it rounds by integers.
    GDR_PTX_HEAD("gdr_sum_bfloat16") GDR_PTX_PLACE("1")
    "ld.global.u16 %r3, [%d1];\nld.global.u16 %r4, [%d2];\nshl.b32 %r3, %r3, 16;\nshl.b32 %r4, %r4, 16;\n"
    "mov.b32 %f1, %r3;\nmov.b32 %f2, %r4;\nadd.rn.f32 %f3, %f1, %f2;\nmov.b32 %r5, %f3;\n"
    "setp.nan.f32 %p2, %f3, %f3;\nshr.u32 %r6, %r5, 16;\nand.b32 %r7, %r6, 1;\nor.b32 %r6, %r6, 64;\n"
    "add.u32 %r8, %r5, 32767;\nadd.u32 %r8, %r8, %r7;\nshr.u32 %r8, %r8, 16;\nselp.b32 %r9, %r6, %r8, %p2;\n"
    "st.global.u16 [%d1], %r9;\n" GDR_PTX_END;
// clang-format on

#undef GDR_PTX_HEAD
#undef GDR_PTX_PLACE
#undef GDR_PTX_END

}  // namespace gdr::memory::cuda
