#pragma once

#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"

namespace gdr {

/// An uncertain parameter of a model: its file gives a range, or it is an estimate.
struct UncertainParameter {
  std::string kind;   ///< "cpu", "gpu"...
  std::string model;  ///< "k40"
  std::string name;   ///< "copy_bandwidth"
  bool estimate = false;
  double spread = 0;  ///< share by which it varies down and up where the file gives no bound
};

/// The uncertain quantities and counts of a model. An estimate without low and high may be off by
/// `estimate_spread`; a value with a source and no bounds is exact.
std::vector<UncertainParameter> uncertain_parameters(const ModelLibrary& models,
                                                     const std::string& kind,
                                                     const std::string& model,
                                                     double estimate_spread);

enum class Bound { low, high };

/// The library with the parameter at one end of its range.
ModelLibrary varied(const ModelLibrary& models, const UncertainParameter& parameter, Bound bound);

}  // namespace gdr
