#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "verdict/nccl_distance.hpp"
#include "verdict/rules.hpp"
#include "verdict/version.hpp"

namespace gdr {
namespace {

/// Levels in growing order; NCCL uses GPUDirect RDMA up to the one that is set.
constexpr std::array<std::string_view, 5> levels{"LOC", "PIX", "PXB", "PHB", "SYS"};
constexpr std::size_t default_level = 2;

/// Position of NCCL_NET_GDR_LEVEL's value: a path name, or an integer of the old style. nullopt: not one of them.
std::optional<std::size_t> level_of(std::string_view text) {
  const auto* found = std::find(levels.begin(), levels.end(), text);
  if (found != levels.end()) return static_cast<std::size_t>(found - levels.begin());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return std::min(number, levels.size() - 1);
}

/// NCCL counts PHB of a GPU on NVLink-C2C as near from 2.27 on (NCCL_NET_GDR_C2C).
bool c2c_exception(const PairContext& pair) {
  const std::string& version = pair.host().software.nccl_version;
  return has_c2c(pair.host(), pair.gpu()) && !version.empty() && !version_before(version, "2.27");
}

}  // namespace

void nccl_rules(const PairContext& pair, RuleNotes& notes) {
  const std::string distance = nccl_distance(*pair.graph, pair.from, pair.to);
  const auto needed = level_of(distance);
  const std::string& set = pair.host().software.nccl_net_gdr_level;
  const std::size_t allowed = set.empty() ? default_level : level_of(set).value_or(default_level);
  if (!needed || *needed <= allowed || pair.tree_hidden || (set.empty() && distance == "PHB" && c2c_exception(pair))) return;
  const ForwardLimit limit = forward_limit(pair);
  const bool slow = limit.least() && *limit.least() < pair.could_carry * 0.5;
  const std::string level = set.empty() ? "its default level PXB" : fmt::format("NCCL_NET_GDR_LEVEL={}", set);
  std::string remedy = fmt::format("Set NCCL_NET_GDR_LEVEL={}", distance);
  if (distance == "PHB" && has_c2c(pair.host(), pair.gpu())) remedy += " or use NCCL 2.27 or newer (2.26: NCCL_NET_GDR_C2C=1)";
  remedy += slow ? "; it may not help, since the CPU forwards peer traffic slowly." : " and compare the bandwidth.";
  notes.push_back({"gdr-level-too-low",
                   Effect::costs,
                   {},
                   fmt::format("NCCL calls this way {} and with {} stages through host memory instead of using GPUDirect RDMA.",
                               distance, level),
                   remedy});
}

}  // namespace gdr
