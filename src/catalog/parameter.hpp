#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/catalog/parameter_rules.hpp"
#include "src/common/pcie_link.hpp"

namespace gdr {

/// One number or fact of a component and its origin. `low` and `high` bracket it where sources
/// disagree.
template <typename T>
struct Parameter {
  T value{};
  std::optional<T> low;
  std::optional<T> high;
  std::string basis;      ///< the source's text, or what the estimate rests on
  bool estimate = false;  ///< true: a guess
  bool operator==(const Parameter&) const = default;
};

/// What every model file carries.
struct ModelHeader {
  std::string name;
  std::string title;
  std::vector<std::string> pci_ids;  ///< "vendor:device", lower-case hexadecimal
  std::optional<PcieLink> pcie;      ///< the fastest and widest link it trains
  bool operator==(const ModelHeader&) const = default;
};

/// CPUID ranges as /proc/cpuinfo prints them.
struct CpuIdentity {
  std::string vendor;
  int family = 0;
  std::vector<int> models;
  bool operator==(const CpuIdentity&) const = default;
};

/// What a model's struct declares about a parameter beside its type.
template <typename T>
struct Declaration {
  const char* name;     ///< in the JSON, in ranges, and in docs/models.md
  const char* meaning;  ///< for the tables of docs/models.md
  Rule<T> rule = usual_rule<T>;
};

// A parameter is declared once, in the struct of its model: GDR_PARAMETER makes the field and a
// function that hands name, meaning and rule to a visitor. C++20 cannot list the fields of a
// struct; the functions are told apart by their lines, and for_each_parameter() tries every line.

struct AnyLine {};
template <int line>
struct Line : AnyLine {};
constexpr int most_lines = 250;

/// Begins a model, whose files lie in models/`directory`.
#define GDR_MODEL(directory)                       \
  static constexpr const char* kind = directory;   \
  static constexpr int first_line = __LINE__;      \
  template <typename... Rest>                      \
  static void visit(AnyLine, Rest&... /*rest*/) {} \
  ModelHeader header

/// GDR_PARAMETER(type, name, meaning) or GDR_PARAMETER(type, name, meaning, rule).
#define GDR_PARAMETER(type, name, ...) GDR_FIELD(Parameter<type>, type, name, #name, __VA_ARGS__)

/// A parameter that a file may leave out.
#define GDR_OPTIONAL_PARAMETER(type, name, ...) \
  GDR_FIELD(std::optional<Parameter<type>>, type, name, #name, __VA_ARGS__)

/// A required parameter whose name in files is not a valid field name.
#define GDR_RENAMED_PARAMETER(type, field, name, ...) \
  GDR_FIELD(Parameter<type>, type, field, name, __VA_ARGS__)

#define GDR_FIELD(field_type, type, field, ...)                                          \
  static_assert(__LINE__ - first_line < most_lines);                                     \
  template <typename Use, typename... Models>                                            \
  static void visit(Line<__LINE__ - first_line> /*line*/, Use& use, Models&... models) { \
    use(Declaration<type>{__VA_ARGS__}, models.field...);                                \
  }                                                                                      \
  field_type field

/// Calls `use(declaration, parameter...)` for each parameter in the order of the struct, with that
/// parameter of each model; the models are of one kind. A parameter is a Parameter<T>, or a
/// std::optional of one.
template <typename Use, typename Model, typename... Models>
void for_each_parameter(Use use, Model& model, Models&... others) {
  const auto each = [&]<int... line>(std::integer_sequence<int, line...> /*lines*/) {
    (Model::visit(Line<line>{}, use, model, others...), ...);
  };
  each(std::make_integer_sequence<int, most_lines>{});
}

/// The parameter, or nullptr where an optional one is absent.
template <typename T>
const Parameter<T>* if_present(const Parameter<T>& parameter) {
  return &parameter;
}
template <typename T>
const Parameter<T>* if_present(const std::optional<Parameter<T>>& parameter) {
  return parameter ? &*parameter : nullptr;
}
template <typename T>
Parameter<T>* if_present(Parameter<T>& parameter) {
  return &parameter;
}
template <typename T>
Parameter<T>* if_present(std::optional<Parameter<T>>& parameter) {
  return parameter ? &*parameter : nullptr;
}

}  // namespace gdr
