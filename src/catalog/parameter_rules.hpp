#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "src/common/units.hpp"

namespace gdr {

/// Rules for values beyond their type: each returns an empty string for an allowed value, else what
/// is allowed.
template <typename T>
using Rule = std::string (*)(const T&);

template <typename T>
std::string anything(const T& /*value*/) {
  return {};
}
/// For numbers that code divides by, or without which the component would not exist.
template <typename T>
std::string above_zero(const T& value) {
  return value == T{} ? "more than 0" : "";
}
std::string percent(const std::int64_t& value);
/// The values that PCIe allows as maximum payload and as maximum read request.
std::string payload_limit(const Bytes& value);
std::string some_text(const std::string& value);
/// DDR4-3200 and the like.
std::string speed_grade(const std::string& value);
std::string one_of_words(std::initializer_list<std::string_view> words, const std::string& value);

/// A string as a template's argument.
template <std::size_t size>
struct Word {
  char text[size];
  consteval Word(const char (&literal)[size]) { std::copy_n(literal, size, text); }
};
template <Word... words>
std::string one_of(const std::string& value) {
  return one_of_words({words.text...}, value);
}

template <typename T>
inline constexpr Rule<T> usual_rule = anything<T>;
template <>
inline constexpr Rule<Bytes> usual_rule<Bytes> = above_zero<Bytes>;
template <>
inline constexpr Rule<Bandwidth> usual_rule<Bandwidth> = above_zero<Bandwidth>;
template <>
inline constexpr Rule<std::string> usual_rule<std::string> = some_text;

/// "10de:20b0": four digits, a colon, four digits, lower-case hexadecimal.
bool is_pci_id(std::string_view text);

}  // namespace gdr
