#include "src/catalog/model_variation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "src/catalog/model_parameters.hpp"
#include "src/common/error.hpp"

namespace gdr {
namespace {

Bytes scaled(Bytes value, double factor) {
  return {std::max<std::uint64_t>(
      1, static_cast<std::uint64_t>(std::llround(value.as_double() * factor)))};
}
Bandwidth scaled(Bandwidth value, double factor) { return value * factor; }
Duration scaled(Duration value, double factor) { return value * factor; }
std::int64_t scaled(std::int64_t value, double factor) {
  // A count changes by one at least, or it would count as certain.
  const auto by =
      std::max<std::int64_t>(1, std::llround(static_cast<double>(value) * std::abs(factor - 1)));
  return std::max<std::int64_t>(1, factor < 1 ? value - by : value + by);
}

template <typename T>
constexpr bool has_range = !std::is_same_v<T, bool> && !std::is_same_v<T, std::string>;

/// Calls `use` with every parameter that is there, by name.
template <typename Use>
struct EachParameter {
  Use use;
  template <typename P>
  void required(const char* name, P& parameter) {
    use(name, parameter);
  }
  template <typename P>
  void optional(const char* name, P& parameter) {
    if (parameter) use(name, *parameter);
  }
};
template <typename Use>
EachParameter(Use) -> EachParameter<Use>;

/// Calls `use` with the model of that kind and name.
template <typename Use>
auto with_model(const ModelLibrary& models, const std::string& kind, const std::string& name,
                Use use) {
  if (kind == "pcie") return use(models.pcie(std::stoi(name.substr(3))));
  if (kind == "cpu") return use(models.cpu(name));
  if (kind == "switch") return use(models.pci_switch(name));
  if (kind == "gpu") return use(models.gpu(name));
  if (kind == "nic") return use(models.nic(name));
  if (kind == "nvme") return use(models.nvme(name));
  if (kind == "nvlink") return use(models.nvlink(name));
  if (kind == "fabric") return use(models.fabric(name));
  throw InputError(fmt::format("\"{}\" is no kind of model", kind));
}

/// Replaces a parameter by that of another model of the kind, wherever its name matches.
template <typename Model>
struct Taker {
  const std::string& wanted;
  const Model& donor;
  bool taken = false;

  template <typename P>
  void required(const char* name, P& parameter) {
    take(name, parameter);
  }
  template <typename P>
  void optional(const char* name, P& parameter) {
    take(name, parameter);
  }

 private:
  /// The donor's parameter of the same name, by a visit of its own.
  template <typename P>
  struct Finder {
    const std::string& wanted;
    P& into;
    void required(const char* name, const P& parameter) {
      if (wanted == name) into = parameter;
    }
    void optional(const char* name, const P& parameter) { required(name, parameter); }
    template <typename Other>
    void required(const char* /*name*/, const Other& /*parameter*/) {}
    template <typename Other>
    void optional(const char* /*name*/, const Other& /*parameter*/) {}
  };
  template <typename P>
  void take(const char* name, P& parameter) {
    if (wanted != name) return;
    visit_parameters(donor, Finder<P>{wanted, parameter});
    taken = true;
  }
};

}  // namespace

std::vector<UncertainParameter> uncertain_parameters(const ModelLibrary& models,
                                                     const std::string& kind,
                                                     const std::string& model,
                                                     double estimate_spread) {
  std::vector<UncertainParameter> list;
  with_model(models, kind, model, [&](const auto& found) {
    auto copy = found;
    visit_parameters(copy,
                     EachParameter{[&]<typename T>(const char* name, Parameter<T>& parameter) {
                       if constexpr (has_range<T>) {
                         const bool ranged = parameter.low || parameter.high;
                         if (ranged || parameter.estimate)
                           list.push_back({kind, model, name, parameter.estimate,
                                           parameter.estimate && !ranged ? estimate_spread : 0});
                       }
                     }});
  });
  return list;
}

std::vector<std::string> parameters_resting_on(const ModelLibrary& models, const std::string& kind,
                                               const std::string& model, const std::string& text) {
  std::vector<std::string> names;
  with_model(models, kind, model, [&](const auto& found) {
    auto copy = found;
    visit_parameters(copy, EachParameter{[&](const char* name, const auto& parameter) {
                       if (parameter.basis.find(text) != std::string::npos)
                         names.emplace_back(name);
                     }});
  });
  return names;
}

ModelLibrary varied(const ModelLibrary& models, const UncertainParameter& uncertain, Bound bound) {
  return with_model(models, uncertain.kind, uncertain.model, [&](const auto& found) {
    auto model = found;
    visit_parameters(
        model, EachParameter{[&]<typename T>(const char* name, Parameter<T>& parameter) {
          if constexpr (has_range<T>) {
            if (uncertain.name != name) return;
            const auto& given = bound == Bound::low ? parameter.low : parameter.high;
            const double factor = bound == Bound::low ? 1 - uncertain.spread : 1 + uncertain.spread;
            if (given) parameter.value = *given;
            else if (uncertain.spread > 0) parameter.value = scaled(parameter.value, factor);
          }
        }});
    return models.with(std::move(model));
  });
}

ModelLibrary with_parameter_of(const ModelLibrary& models, const std::string& kind,
                               const std::string& name, const std::string& parameter,
                               const std::string& donor) {
  return with_model(models, kind, name, [&]<typename Model>(const Model& found) {
    Model model = found;
    const Model other = with_model(models, kind, donor, [](const auto& m) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(m)>, Model>) return m;
      else return Model{};
    });
    Taker<Model> taker{parameter, other};
    visit_parameters(model, taker);
    if (!taker.taken)
      throw InputError(fmt::format("{} models have no parameter \"{}\"", kind, parameter));
    return models.with(std::move(model));
  });
}

}  // namespace gdr
