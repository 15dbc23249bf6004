#pragma once

#include <cstdint>
#include <string_view>

#include "src/common/splitmix.hpp"

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
  RandomNumbers(Seed seed, std::string_view name) : key_(splitmix64(seed.value)) {
    for (const char c : name) key_ = splitmix64(key_ ^ static_cast<unsigned char>(c));
  }

  [[nodiscard]] std::uint64_t at(std::uint64_t frame, std::uint64_t purpose) const {
    return splitmix64(splitmix64(key_ ^ frame) ^ purpose);
  }

  /// True for this share of the frames.
  [[nodiscard]] bool chance(std::uint64_t frame, std::uint64_t purpose,
                            Probability probability) const {
    return happens(at(frame, purpose), probability.share);
  }

 private:
  std::uint64_t key_;
};

}  // namespace gdr::fabric
