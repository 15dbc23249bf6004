#pragma once

#include <cstddef>
#include <cstdint>

#include "src/memory/device_memory.hpp"

namespace gdr::memory {

/// IEEE 754 binary16 and bfloat16 as bits. Conversions to them round to nearest even and overflow
/// to infinity; NaN stays NaN.
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);

/// into[i] += from[i] for `count` elements; integers wrap. No alignment is needed.
void add_elements(std::byte* into, const std::byte* from, std::uint64_t count, ElementType type);

}  // namespace gdr::memory
