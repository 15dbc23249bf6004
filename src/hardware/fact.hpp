#pragma once

#include <utility>

namespace gdr {

/// What a fact about a machine rests on.
enum class Basis {
  stated,   ///< the topology file says it
  model,    ///< a model that the file names says it
  assumed,  ///< nothing says it: the generic model or a usual value stands in
  unknown,  ///< the file leaves it open and the answer depends on it
};

/// A fact with its basis. `value` is always set: for `unknown` it is what the simulator uses. Code
/// that needs a number reads the value; code that judges reads the basis first.
template <typename T>
struct Fact {
  T value{};
  Basis basis = Basis::stated;

  [[nodiscard]] bool known() const { return basis != Basis::unknown; }
  operator const T&() const { return value; }  // NOLINT(google-explicit-constructor)
  bool operator==(const Fact&) const = default;
};

template <typename T>
Fact<T> stated(T value) {
  return {std::move(value), Basis::stated};
}

}  // namespace gdr
