#pragma once

#include <cstdint>
#include <string_view>

namespace gdr::fabric {

/// The one seed of a run.
struct Seed {
  std::uint64_t value = 1;
  bool operator==(const Seed&) const = default;
};

/// A share of frames, 0 to 1.
struct Probability {
  double share = 0;
  auto operator<=>(const Probability&) const = default;
};

/// Random numbers addressed by (frame, purpose), not drawn in sequence: for one seed and link name
/// they are always the same. Links therefore do not affect each other, and changing the loss rate
/// does not change which frames are reordered.
class RandomNumbers {
 public:
  RandomNumbers(Seed seed, std::string_view name) : key_(mix(seed.value)) {
    for (const char c : name) key_ = mix(key_ ^ static_cast<unsigned char>(c));
  }

  [[nodiscard]] std::uint64_t at(std::uint64_t frame, std::uint64_t purpose) const {
    return mix(mix(key_ ^ frame) ^ purpose);
  }

  /// True for this share of the frames.
  [[nodiscard]] bool chance(std::uint64_t frame, std::uint64_t purpose,
                            Probability probability) const {
    return static_cast<double>(at(frame, purpose) >> 11U) * 0x1p-53 < probability.share;
  }

 private:
  /// One step of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators,
  /// 2014).
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z += 0x9e3779b97f4a7c15U;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
  }

  std::uint64_t key_;
};

}  // namespace gdr::fabric
