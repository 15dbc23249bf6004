#include "src/nccl/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/common/error.hpp"

namespace gdr::nccl {
namespace {

constexpr std::array<std::string_view, 12> path_names{"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                                      "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

/// 21806 for "2.18.6"; ignores what follows the third number. nullopt: not a version, or older than
/// the modelled ones.
std::optional<int> version_number(const std::string& version) {
  std::array<int, 3> parts{0, 0, 0};
  const char* at = version.data();
  const char* end = at + version.size();
  std::size_t found = 0;
  for (; found < parts.size(); ++found) {
    const auto [stop, error] = std::from_chars(at, end, parts[found]);
    if (error != std::errc{} || parts[found] < 0 || parts[found] > 99) break;
    at = stop;
    if (at == end || *at != '.') {
      ++found;
      break;
    }
    ++at;
  }
  const int number = parts[0] * 10000 + parts[1] * 100 + parts[2];
  return found < 2 || number < 21200 ? std::nullopt : std::optional(number);
}

}  // namespace

std::string_view to_string(PathType type) { return path_names.at(static_cast<std::size_t>(type)); }

bool is_modelled(const std::string& version) { return version_number(version).has_value(); }

Rules rules_of(const std::string& version) {
  const std::optional<int> known = version_number(version);
  if (!known)
    throw InputError(fmt::format("NCCL version \"{}\": allowed are 2.12 and newer, as in 2.18.6",
                                 version.substr(0, 40)));
  const int number = *known;
  Rules rules;
  rules.broadcom_gen5 = number >= 22000;
  rules.broadcom_same_id = number < 22000;
  rules.amd_limited = number >= 21900;
  rules.new_intel = number >= 22600;
  rules.sm90_nvlink = number >= 22000 ? 20.6F : 20.0F;
  rules.sm100_nvlink = number >= 22705 ? 40.1F : number >= 22700 ? 40.0F : rules.sm90_nvlink;
  rules.c2c = number >= 21900;
  rules.c2c_is_own_type = number >= 22600;
  rules.p2c = number >= 22700;
  rules.p2c_nearest_only = number >= 22900;
  rules.merge_functions = number < 22400;
  rules.type_before_hops = number >= 23007;
  rules.device_modulo = number >= 23007;
  rules.relay_needs_gdr = number >= 23000;
  rules.relay_over_c2c = number >= 22705;
  rules.divert_always = number < 22100;
  rules.reads_from_sm80 = number >= 21900;
  rules.p2p_over_cpu = number < 22300;
  rules.any_gpu_is_local = number < 21900;
  rules.gdr_c2c = number >= 22700;
  rules.level_includes_p2c = number >= 22900;
  rules.max_channels = number >= 22400 ? 64 : 32;
  return rules;
}

std::optional<PathType> parse_level(std::string_view text) {
  for (std::size_t i = 0; i <= static_cast<std::size_t>(PathType::sys); ++i)
    if (path_names[i] == text) return static_cast<PathType>(i);
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  static constexpr std::array<PathType, 6> numbered{PathType::loc, PathType::pix, PathType::pxb,
                                                    PathType::phb, PathType::sys, PathType::sys};
  std::size_t number = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), number);
  if (result.ec == std::errc::result_out_of_range) number = numbered.size();
  return numbered[std::min(number, numbered.size() - 1)];
}

bool uses_gdr_over_c2c(const Rules& rules, const Settings& settings) {
  return settings.net_gdr_c2c.value_or(rules.gdr_c2c);
}

PathType gdr_level(const Rules& rules, const Settings& settings) {
  const bool near_over_c2c = rules.level_includes_p2c && uses_gdr_over_c2c(rules, settings);
  return parse_level(settings.net_gdr_level)
      .value_or(near_over_c2c ? PathType::p2c : PathType::pxb);
}

}  // namespace gdr::nccl
