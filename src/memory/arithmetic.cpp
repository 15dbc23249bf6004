#include "src/memory/arithmetic.hpp"

#include <bit>
#include <cmath>
#include <cstring>

namespace gdr::memory {

Bytes size_of(ElementType type) {
  return Bytes{type == ElementType::float32 || type == ElementType::int32 ? std::uint64_t{4}
                                                                          : std::uint64_t{2}};
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000U) << 16U;
  const std::uint32_t exponent = (bits >> 10U) & 0x1fU;
  const std::uint32_t fraction = bits & 0x3ffU;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000U | (fraction << 13U));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112U) << 23U) | (fraction << 13U));
  const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
  return sign != 0 ? -magnitude : magnitude;
}

std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16U) & 0x8000U);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | 0x7e00U);
  const float magnitude = std::fabs(value);
  // 65520 is halfway between the largest half and the next value, which does not exist.
  if (magnitude >= 65520.0F) return static_cast<std::uint16_t>(sign | 0x7c00U);
  // Below 2^-14 halves are multiples of 2^-24; nearbyint rounds to nearest even.
  if (magnitude < 0x1p-14F)
    return static_cast<std::uint16_t>(
        sign | static_cast<std::uint16_t>(std::nearbyint(std::ldexp(magnitude, 24))));
  const std::uint32_t rest = bits & 0x7fffffffU;
  const std::uint32_t rounded = rest + 0xfffU + ((rest >> 13U) & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - (112U << 23U)) >> 13U));
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16U) | 0x40U);
  return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U);
}

namespace {

template <typename T, typename Add>
void add_each(std::byte* into, const std::byte* from, std::uint64_t count, Add add) {
  for (std::uint64_t i = 0; i < count; ++i) {
    T a;
    T b;
    std::memcpy(&a, into + i * sizeof(T), sizeof(T));
    std::memcpy(&b, from + i * sizeof(T), sizeof(T));
    a = add(a, b);
    std::memcpy(into + i * sizeof(T), &a, sizeof(T));
  }
}

}  // namespace

void add_elements(std::byte* into, const std::byte* from, std::uint64_t count, ElementType type) {
  using Bits16 = std::uint16_t;
  switch (type) {
    case ElementType::float32:
      return add_each<float>(into, from, count, [](float a, float b) { return a + b; });
    case ElementType::int32:
      return add_each<std::uint32_t>(into, from, count,
                                     [](std::uint32_t a, std::uint32_t b) { return a + b; });
    // Rounding the sum of two such numbers to float first does not change the result: float has
    // more than twice their bits.
    case ElementType::float16:
      return add_each<Bits16>(into, from, count, [](Bits16 a, Bits16 b) {
        return float_to_half(half_to_float(a) + half_to_float(b));
      });
    case ElementType::bfloat16:
      return add_each<Bits16>(into, from, count, [](Bits16 a, Bits16 b) {
        return float_to_bfloat16(bfloat16_to_float(a) + bfloat16_to_float(b));
      });
  }
}

}  // namespace gdr::memory
