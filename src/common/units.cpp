#include "src/common/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>

#include "src/common/error.hpp"

namespace gdr {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

constexpr double kibi = 1024.0;

// One table per dimension serves the parser, the printer and the error texts.
constexpr std::array<Unit, 19> byte_units{{{"B", 1},
                                           {"kB", 1e3},
                                           {"MB", 1e6},
                                           {"GB", 1e9},
                                           {"TB", 1e12},
                                           {"KiB", kibi},
                                           {"MiB", kibi* kibi},
                                           {"GiB", kibi* kibi* kibi},
                                           {"TiB", kibi* kibi* kibi* kibi},
                                           {"b", 1.0 / 8},
                                           {"kb", 1e3 / 8},
                                           {"Mb", 1e6 / 8},
                                           {"Gb", 1e9 / 8},
                                           {"Tb", 1e12 / 8},
                                           {"Kib", kibi / 8},
                                           {"Mib", kibi* kibi / 8},
                                           {"Gib", kibi* kibi* kibi / 8},
                                           {"Tib", kibi* kibi* kibi* kibi / 8},
                                           {"KB", 1e3}}};
constexpr std::array<Unit, 8> time_units{{{"ps", 1e-12},
                                          {"ns", 1e-9},
                                          {"us", 1e-6},
                                          {"ms", 1e-3},
                                          {"s", 1},
                                          {"min", 60},
                                          {"h", 3600},
                                          {"d", 86400}}};

struct Dimension {
  std::string_view what;
  std::string_view allowed;
};

// Every real component and transfer is within these limits; beyond them arithmetic loses precision.
constexpr double most_bandwidth = 1e15;
constexpr double least_bandwidth = 1e3;
constexpr double most_seconds = 864000;

constexpr Dimension bytes_dimension{
    "an amount of data", "B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (or bits: b, kb, Mb, Gb)"};
constexpr Dimension bandwidth_dimension{
    "a bandwidth", "B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s (or bits: Mb/s, Gb/s, Tb/s)"};
constexpr Dimension duration_dimension{"a time", "ps, ns, us, ms, s, min, h, d"};

[[noreturn]] void fail(std::string_view text, const Dimension& dimension,
                       std::string_view problem) {
  throw InputError(fmt::format("\"{}\" is not {}: {}; write a number and one of {}",
                               printable(text), dimension.what, problem, dimension.allowed));
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<double> factor_of(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return unit.factor;
  return std::nullopt;
}

/// Both "x/s" and "xps" mean x per second.
std::optional<double> rate_factor_of(std::string_view name) {
  for (const std::string_view suffix : {std::string_view("/s"), std::string_view("ps")})
    if (name.size() > suffix.size() && name.ends_with(suffix))
      return factor_of(byte_units, name.substr(0, name.size() - suffix.size()));
  return std::nullopt;
}

template <typename FactorOf>
double parse_number_with_unit(std::string_view whole, const Dimension& dimension, FactorOf factor) {
  const std::string_view text = trim(whole);
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) fail(whole, dimension, "the number is out of range");
  if (error != std::errc{}) fail(whole, dimension, "it does not start with a number");
  if (!std::isfinite(number)) fail(whole, dimension, "the number is not finite");
  if (std::signbit(number) && number != 0) fail(whole, dimension, "it is negative");
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(end - text.data())));
  if (unit.empty()) {
    if (number == 0) return 0;
    fail(whole, dimension, "the unit is missing");
  }
  const std::optional<double> scale = factor(unit);
  if (!scale) fail(whole, dimension, fmt::format("unknown unit \"{}\"", printable(unit, 20)));
  const double value = number * *scale;
  if (!std::isfinite(value)) fail(whole, dimension, "the number is out of range");
  return value;
}

std::string shortest(double value, std::span<const Unit> units, std::string_view suffix) {
  if (value == 0) return "0";
  std::string best;
  for (const Unit& unit : units) {
    const std::string candidate = fmt::format("{}{}{}", value / unit.factor, unit.name, suffix);
    double back = 0;
    std::from_chars(candidate.data(), candidate.data() + candidate.size(), back);
    if (back * unit.factor != value) continue;
    if (best.empty() || candidate.size() < best.size()) best = candidate;
  }
  return best.empty()
             ? fmt::format("{}{}{}", value / units.front().factor, units.front().name, suffix)
             : best;
}

}  // namespace

namespace {

/// Parses whole numbers of whole units exactly; a double would round them above 2^53. The general
/// parser handles everything else.
std::optional<Bytes> exact_bytes(std::string_view whole) {
  const std::string_view text = trim(whole);
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return std::nullopt;
  const std::optional<double> factor =
      factor_of(byte_units, trim(text.substr(static_cast<std::size_t>(end - text.data()))));
  if (!factor || *factor < 1 || *factor != std::floor(*factor)) return std::nullopt;
  const auto scale = static_cast<std::uint64_t>(*factor);
  constexpr std::uint64_t limit = std::uint64_t{1} << 63U;
  if (number >= limit / scale) return std::nullopt;
  return Bytes{number * scale};
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  if (const auto bytes = exact_bytes(text)) return *bytes;
  const double value = parse_number_with_unit(
      text, bytes_dimension, [](std::string_view name) { return factor_of(byte_units, name); });
  if (value != std::floor(value)) fail(text, bytes_dimension, "it is not a whole number of bytes");
  if (value >= 0x1p63) fail(text, bytes_dimension, "the number is out of range");
  return {static_cast<std::uint64_t>(value)};
}

Bandwidth parse_bandwidth(std::string_view text) {
  const double value = parse_number_with_unit(text, bandwidth_dimension, rate_factor_of);
  if (value > most_bandwidth) fail(text, bandwidth_dimension, "it is above 1000TB/s");
  if (value != 0 && value < least_bandwidth) fail(text, bandwidth_dimension, "it is below 1kB/s");
  return {value};
}

Duration parse_duration(std::string_view text) {
  const double value = parse_number_with_unit(
      text, duration_dimension, [](std::string_view name) { return factor_of(time_units, name); });
  if (value > most_seconds) fail(text, duration_dimension, "it is above 10d");
  return {value};
}

std::string to_string(Bytes value) {
  // Use a larger unit only for whole multiples: 4KiB, but 4097B.
  static constexpr std::array<Unit, 4> binary{{{"TiB", kibi * kibi * kibi * kibi},
                                               {"GiB", kibi * kibi * kibi},
                                               {"MiB", kibi * kibi},
                                               {"KiB", kibi}}};
  for (const Unit& unit : binary) {
    const auto factor = static_cast<std::uint64_t>(unit.factor);
    if (value.count >= factor && value.count % factor == 0)
      return fmt::format("{}{}", value.count / factor, unit.name);
  }
  return fmt::format("{}B", value.count);
}

std::string to_string(Bandwidth value) {
  return shortest(value.bytes_per_second, std::span(byte_units).first(5), "/s");
}

std::string to_string(Duration value) {
  return shortest(value.seconds, std::span(time_units).first(5), "");
}

}  // namespace gdr
