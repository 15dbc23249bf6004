#include "src/catalog/model_variation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace gdr {
namespace {

Bytes scaled(Bytes value, double factor) {
  return {std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::llround(value.as_double() * factor)))};
}
Bandwidth scaled(Bandwidth value, double factor) { return value * factor; }
Duration scaled(Duration value, double factor) { return value * factor; }
std::int64_t scaled(std::int64_t value, double factor) {
  // A count changes by at least one; otherwise it would be taken as certain.
  const auto by =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(value) * std::abs(factor - 1)));
  return std::max<std::int64_t>(1, factor < 1 ? value - by : value + by);
}

template <typename T>
constexpr bool has_range = !std::is_same_v<T, bool> && !std::is_same_v<T, std::string>;

}  // namespace

std::vector<UncertainParameter> uncertain_parameters(const ModelLibrary& models,
                                                     const std::string& kind,
                                                     const std::string& name,
                                                     double estimate_spread) {
  std::vector<UncertainParameter> list;
  const auto add = [&]<typename T>(const Declaration<T>& declaration, const auto& field) {
    const Parameter<T>* parameter = if_present(field);
    if (!has_range<T> || parameter == nullptr) return;
    const bool ranged = parameter->low || parameter->high;
    if (ranged || parameter->estimate)
      list.push_back({kind, name, declaration.name, parameter->estimate,
                      parameter->estimate && !ranged ? estimate_spread : 0});
  };
  std::visit([&](const auto& model) { for_each_parameter(add, *model); }, models.find(kind, name));
  return list;
}

ModelLibrary varied(const ModelLibrary& models, const UncertainParameter& uncertain, Bound bound) {
  const auto vary = [&]<typename T>(const Declaration<T>& declaration, auto& field) {
    if constexpr (has_range<T>) {
      Parameter<T>* parameter = if_present(field);
      if (parameter == nullptr || uncertain.name != declaration.name) return;
      const auto& given = bound == Bound::low ? parameter->low : parameter->high;
      const double factor = bound == Bound::low ? 1 - uncertain.spread : 1 + uncertain.spread;
      if (given) parameter->value = *given;
      else if (uncertain.spread > 0) parameter->value = scaled(parameter->value, factor);
    }
  };
  return std::visit(
      [&](const auto& found) {
        auto model = *found;
        for_each_parameter(vary, model);
        return models.with(std::move(model));
      },
      models.find(uncertain.kind, uncertain.model));
}

}  // namespace gdr
