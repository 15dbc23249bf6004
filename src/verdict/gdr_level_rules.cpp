#include <fmt/format.h>

#include <algorithm>

#include "src/nccl/history.hpp"
#include "src/verdict/rules.hpp"

namespace gdr {

void nccl_rules(const PairContext& pair, const NcclDistances& nccl, RuleNotes& notes) {
  if (!nccl.unknown_version().empty())
    notes.push_back({"nccl-version-unknown", Effect::informs, host_place(),
                     fmt::format("NCCL {} is not known here (known are {}): distances and the "
                                 "level are taken to be those of the newest known.",
                                 nccl.unknown_version(), nccl::known_versions),
                     "Compare with what it logs (NCCL_DEBUG=INFO; gdr nccl --log)."});
  if (pair.tree_hidden || !nccl.level_too_low(pair.from, pair.to)) return;
  const nccl::PathType type = nccl.type(pair.from, pair.to);
  const ForwardLimit limit = forward_limit(pair);
  const bool slow = limit.least() && *limit.least() < pair.could_carry * 0.5;
  std::string remedy = fmt::format("Set NCCL_NET_GDR_LEVEL={}", nccl::to_string(type));
  const std::vector<NvLink>& links = pair.host().nvlinks;
  const bool c2c = std::any_of(links.begin(), links.end(), [&](const NvLink& link) {
    return link.from == pair.gpu().name && link.model == "nvlink-c2c";
  });
  if (type == nccl::PathType::phb && c2c)
    remedy += " or use NCCL 2.27 or newer (2.26: NCCL_NET_GDR_C2C=1)";
  remedy += slow ? "; it may not help, since the CPU forwards peer traffic slowly."
                 : " and compare the bandwidth.";
  notes.push_back({"gdr-level-too-low",
                   Effect::costs,
                   {},
                   fmt::format("{} rates this route {} and with {} stages through host memory "
                               "instead of using GPUDirect RDMA.",
                               pair.hardware->collective_library(pair.target),
                               nccl::to_string(type), nccl.level_text()),
                   remedy});
}

}  // namespace gdr
