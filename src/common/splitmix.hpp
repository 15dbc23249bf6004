#pragma once

#include <cstdint>

namespace gdr {

/// One step of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
/// 2014). Numbers that follow each other give results that have nothing in common.
constexpr std::uint64_t splitmix64(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

/// True for `share` (0 to 1) of all random `bits`.
constexpr bool happens(std::uint64_t bits, double share) {
  return static_cast<double>(bits >> 11U) * 0x1p-53 < share;
}

}  // namespace gdr
