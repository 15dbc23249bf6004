#pragma once

#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"

namespace gdr {

/// A parameter of a model that may be other than its file says: it has a range there, or is an
/// estimate.
struct UncertainParameter {
  std::string kind;   ///< "cpu", "gpu"...
  std::string model;  ///< "k40"
  std::string name;   ///< "copy_bandwidth"
  bool estimate = false;
  double spread = 0;  ///< share by which it goes down and up where the file gives no bound
};

/// The quantities and counts of a model that are uncertain. An estimate without low and high may be
/// off by `estimate_spread`; what has a source is exact where the file gives no bound.
std::vector<UncertainParameter> uncertain_parameters(const ModelLibrary& models,
                                                     const std::string& kind,
                                                     const std::string& model,
                                                     double estimate_spread);

enum class Bound { low, high };

/// The library with the parameter at one end of its range.
ModelLibrary varied(const ModelLibrary& models, const UncertainParameter& parameter, Bound bound);

}  // namespace gdr
