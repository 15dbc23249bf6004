#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace gdr {

/// An amount of data in bytes.
struct Bytes {
  std::uint64_t count = 0;
  auto operator<=>(const Bytes&) const = default;
  [[nodiscard]] double as_double() const { return static_cast<double>(count); }
};

/// A span of time in seconds.
struct Duration {
  double seconds = 0;
  auto operator<=>(const Duration&) const = default;
  [[nodiscard]] double ns() const { return seconds * 1e9; }
  [[nodiscard]] double us() const { return seconds * 1e6; }
};

/// Data per time in bytes per second (decimal: 1 GB/s is 10^9 bytes per second).
struct Bandwidth {
  double bytes_per_second = 0;
  auto operator<=>(const Bandwidth&) const = default;
  [[nodiscard]] double gigabytes_per_second() const { return bytes_per_second * 1e-9; }
};

constexpr Bytes operator+(Bytes a, Bytes b) { return {a.count + b.count}; }
constexpr Bytes operator*(Bytes a, std::uint64_t n) { return {a.count * n}; }
constexpr Duration operator+(Duration a, Duration b) { return {a.seconds + b.seconds}; }
constexpr Duration operator-(Duration a, Duration b) { return {a.seconds - b.seconds}; }
constexpr Duration operator*(Duration a, double n) { return {a.seconds * n}; }
constexpr Duration& operator+=(Duration& a, Duration b) { return a = a + b; }
constexpr Bandwidth operator*(Bandwidth a, double n) { return {a.bytes_per_second * n}; }
constexpr Duration operator/(Bytes a, Bandwidth b) {
  return {static_cast<double>(a.count) / b.bytes_per_second};
}
constexpr Bandwidth operator/(Bytes a, Duration t) {
  return {static_cast<double>(a.count) / t.seconds};
}

namespace literals {
constexpr Bytes operator""_B(unsigned long long n) { return {n}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {n << 10U}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {n << 20U}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {n << 30U}; }
constexpr Duration operator""_ns(unsigned long long n) { return {static_cast<double>(n) * 1e-9}; }
constexpr Duration operator""_us(unsigned long long n) { return {static_cast<double>(n) * 1e-6}; }
constexpr Bandwidth operator""_GBps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr Bandwidth operator""_Gbps(unsigned long long n) {
  return {static_cast<double>(n) * 1.25e8};
}
}  // namespace literals

/// Parses "4KiB", "1.5MB", "64B": a number and a unit, with optional spaces between them. Only "0"
/// needs no unit. `b` is bit, `B` byte; k, M, G, T are powers of ten, Ki, Mi, Gi, Ti powers of two.
/// The amount must be a whole number of bytes below 2^63. Throws InputError that says what is wrong
/// and what is allowed.
Bytes parse_bytes(std::string_view text);

/// Parses "25GB/s", "200Gb/s", "100Gbps". 0, or from 1kB/s to 1000TB/s. Throws InputError.
Bandwidth parse_bandwidth(std::string_view text);

/// Parses "105ns", "1.5us", "10ms", "2s", "5min". From 0 to 10 days. Throws InputError.
Duration parse_duration(std::string_view text);

/// Formats a value in the largest unit that keeps it short ("4KiB", "25GB/s", "105ns"); the parser
/// reads back the same value.
std::string to_string(Bytes value);
std::string to_string(Bandwidth value);
std::string to_string(Duration value);

}  // namespace gdr
