#include "src/common/units.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "src/common/error.hpp"

namespace {

using gdr::Bandwidth;
using gdr::Bytes;
using gdr::Duration;

template <typename Parse>
std::string error_of(Parse parse, const char* text) {
  try {
    (void)parse(text);
    return "accepted";
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

TEST(Units, Bytes) {
  struct Case {
    const char* text;
    std::uint64_t count;
  };
  const Case cases[] = {
      {"0", 0},
      {"0B", 0},
      {" 64 B ", 64},
      {"1.5kB", 1500},
      {"4KiB", 4096},
      {"1.5MiB", 1572864},
      {"8b", 1},
      {"16Kib", 2048},
      {"1TB", 1000000000000},
      {"2TiB", 2199023255552},
      {"1e3B", 1000},
      {"-0", 0},
      {"1KB", 1000},
      {"1Gb", 125000000},
      {"9007199254740993B", 9007199254740993},
      {"9223372036854774784B", 9223372036854774784U},
  };
  for (const Case& c : cases) EXPECT_EQ(gdr::parse_bytes(c.text).count, c.count) << c.text;
}

TEST(Units, BandwidthAndDuration) {
  EXPECT_EQ(gdr::parse_bandwidth("25GB/s").bytes_per_second, 25e9);
  EXPECT_EQ(gdr::parse_bandwidth("200Gb/s").bytes_per_second, 25e9);
  EXPECT_EQ(gdr::parse_bandwidth("200 Gbps").bytes_per_second, 25e9);
  EXPECT_EQ(gdr::parse_bandwidth("1GiB/s").bytes_per_second, 1073741824);
  EXPECT_EQ(gdr::parse_bandwidth("0").bytes_per_second, 0);
  EXPECT_DOUBLE_EQ(gdr::parse_duration("105ns").seconds, gdr::parse_duration("0.105us").seconds);
  EXPECT_EQ(gdr::parse_duration("5min").seconds, 300);
  EXPECT_EQ(gdr::parse_duration("2h").seconds, 7200);
  EXPECT_EQ(gdr::parse_duration("1d").seconds, 86400);
  EXPECT_EQ(gdr::parse_duration("0").seconds, 0);
}

TEST(Units, EveryErrorSaysWhatIsWrongAndWhatIsAllowed) {
  const std::string bytes =
      "write a number and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (or bits: b, kb, Mb, Gb)";
  EXPECT_EQ(error_of(gdr::parse_bytes, ""),
            "\"\" is not an amount of data: it does not start with a number; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "KiB"),
            "\"KiB\" is not an amount of data: it does not start with a number; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "+1B"),
            "\"+1B\" is not an amount of data: it does not start with a number; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "64"),
            "\"64\" is not an amount of data: the unit is missing; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "64K"),
            "\"64K\" is not an amount of data: unknown unit \"K\"; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "64kiB"),
            "\"64kiB\" is not an amount of data: unknown unit \"kiB\"; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "0x40B"),
            "\"0x40B\" is not an amount of data: unknown unit \"x40B\"; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "-1B"),
            "\"-1B\" is not an amount of data: it is negative; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "0.5B"),
            "\"0.5B\" is not an amount of data: it is not a whole number of bytes; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "1b"),
            "\"1b\" is not an amount of data: it is not a whole number of bytes; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "infB"),
            "\"infB\" is not an amount of data: the number is not finite; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "nanB"),
            "\"nanB\" is not an amount of data: the number is not finite; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "1e999B"),
            "\"1e999B\" is not an amount of data: the number is out of range; " + bytes);
  EXPECT_EQ(
      error_of(gdr::parse_bytes, "9223372036854775808B"),
      "\"9223372036854775808B\" is not an amount of data: the number is out of range; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bytes, "1\nB"),
            "\"1\\x0aB\" is not an amount of data: unknown unit \"\\x0aB\"; " + bytes);
  EXPECT_EQ(error_of(gdr::parse_bandwidth, "25GB"),
            "\"25GB\" is not a bandwidth: unknown unit \"GB\"; write a number and one of B/s, "
            "kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, "
            "GiB/s (or bits: Mb/s, Gb/s, Tb/s)");
  EXPECT_EQ(error_of(gdr::parse_duration, "3"),
            "\"3\" is not a time: the unit is missing; write a number and one of ps, ns, us, ms, "
            "s, min, h, d");
  EXPECT_EQ(error_of(gdr::parse_duration, "1e308d"),
            "\"1e308d\" is not a time: the number is out of range; write a number and one of ps, "
            "ns, us, ms, s, min, h, d");
}

TEST(Units, TextIsShort) {
  EXPECT_EQ(to_string(Bytes{0}), "0B");
  EXPECT_EQ(to_string(Bytes{4096}), "4KiB");
  EXPECT_EQ(to_string(Bytes{4097}), "4097B");
  EXPECT_EQ(to_string(Bytes{std::uint64_t{80} << 30U}), "80GiB");
  EXPECT_EQ(to_string(Bandwidth{25e9}), "25GB/s");
  EXPECT_EQ(to_string(Bandwidth{0}), "0");
  EXPECT_EQ(to_string(gdr::parse_duration("105ns")), "105ns");
  EXPECT_EQ(to_string(gdr::parse_duration("1.5us")), "1.5us");
  EXPECT_EQ(to_string(gdr::parse_duration("2s")), "2s");
}

/// The seed is fixed and printed on failure, so that a failure can be reproduced.
TEST(Units, TextIsReadBackToTheSameValue) {
  constexpr unsigned seed = 4711;
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-15, 15);
  for (int i = 0; i < 20000; ++i) {
    const Bytes bytes{random() >> (1 + random() % 63)};
    const double rate = std::pow(10, 3 + (exponent(random) + 15) * 0.4);
    const double seconds = std::pow(10, exponent(random) * 0.66 - 4);
    ASSERT_EQ(gdr::parse_bytes(to_string(bytes)), bytes)
        << "seed " << seed << ", " << to_string(bytes);
    ASSERT_EQ(gdr::parse_bandwidth(to_string(Bandwidth{rate})).bytes_per_second, rate)
        << "seed " << seed;
    ASSERT_EQ(gdr::parse_duration(to_string(Duration{seconds})).seconds, seconds)
        << "seed " << seed;
  }
  for (const double value : {1e-300, 5e-324, 1.0 / 3})
    EXPECT_EQ(gdr::parse_duration(to_string(Duration{value})).seconds, value);
}

// Test both sides of each bound.
TEST(Units, BoundsOfTheField) {
  EXPECT_EQ(gdr::parse_bandwidth("1000TB/s").bytes_per_second, 1e15);
  EXPECT_EQ(gdr::parse_bandwidth("1kB/s").bytes_per_second, 1e3);
  EXPECT_EQ(gdr::parse_bandwidth("0").bytes_per_second, 0);
  EXPECT_THROW((void)gdr::parse_bandwidth("1001TB/s"), gdr::InputError);
  EXPECT_THROW((void)gdr::parse_bandwidth("999B/s"), gdr::InputError);
  EXPECT_EQ(gdr::parse_duration("10d").seconds, 864000);
  EXPECT_THROW((void)gdr::parse_duration("864001s"), gdr::InputError);
}

TEST(Units, Arithmetic) {
  using namespace gdr::literals;
  EXPECT_EQ(4_KiB + 96_B, Bytes{4192});
  EXPECT_EQ(2_MiB * 3, Bytes{6291456});
  EXPECT_DOUBLE_EQ((1000_B / 1_GBps).us(), 1);
  EXPECT_DOUBLE_EQ((Bytes{1000} / 1_us).gigabytes_per_second(), 1);
  EXPECT_DOUBLE_EQ((200_Gbps).gigabytes_per_second(), 25);
}

TEST(Printable, OneLineCutAtACharacter) {
  EXPECT_EQ(gdr::printable("a\nb\x1b\x7f"), "a\\x0ab\\x1b\\x7f");
  EXPECT_EQ(gdr::printable("abcdef", 3), "abc...");
  EXPECT_EQ(gdr::printable("abcdef", 6), "abcdef");
  EXPECT_EQ(gdr::printable("ab\xc3\xa4z", 3), "ab...");
  EXPECT_EQ(gdr::printable("ab\xc3\xa4z", 4), "ab\xc3\xa4...");
  EXPECT_EQ(gdr::printable(""), "");
}

}  // namespace
