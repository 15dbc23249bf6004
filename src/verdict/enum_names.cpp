#include <array>

#include "src/verdict/verdict.hpp"

namespace gdr {
namespace {

template <std::size_t n, typename Enum>
std::string_view word(const std::array<std::string_view, n>& words, Enum value) {
  return words.at(static_cast<std::size_t>(value));
}

}  // namespace

std::string_view to_string(PairKind kind) {
  return word(std::array<std::string_view, 3>{"gpu-nic", "gpu-gpu", "nvme-gpu"}, kind);
}

std::string_view to_string(PairRoute route) {
  return word(
      std::array<std::string_view, 5>{"switch", "host-bridge", "socket-link", "nvlink", "none"},
      route);
}

std::string_view to_string(KernelP2pdma answer) {
  return word(
      std::array<std::string_view, 4>{"direct", "through-host-bridge", "refused", "unknown"},
      answer);
}

std::string_view to_string(PairAnswer answer) {
  return word(std::array<std::string_view, 4>{"works", "slow", "blocked", "unknown"}, answer);
}

}  // namespace gdr
