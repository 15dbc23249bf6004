#include <algorithm>

#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

constexpr const char* remedy =
    "Boot with iommu=pt (passthrough), or switch the IOMMU off in the BIOS or with intel_iommu=off "
    "or amd_iommu=off.";

constexpr const char* remedy_or_state =
    "Boot with iommu=pt (passthrough), or switch the IOMMU off in the BIOS or with intel_iommu=off "
    "or amd_iommu=off; where ib_write_bw --use_cuda transfers the right bytes, set "
    "\"maps_peer_memory\" in \"software\".";

constexpr const char* untranslated =
    "The IOMMU translates, and GPU drivers give peers untranslated addresses: transfers hang, "
    "fault "
    "or read zeros.";

struct Said {
  Effect effect = Effect::blocks;
  const char* reason = "";
};

/// With dma-buf, NVIDIA's driver maps memory for NICs through the IOMMU. Without dma-buf, some
/// machines are known to work and others not to.
Said of_nic(const PairContext& pair) {
  if (dma_buf_possible(pair).value_or(false))
    return {Effect::slows,
            "The IOMMU translates each peer access, as dma-buf maps it: traffic goes up to the "
            "root complex even below one switch, and misses of the IOMMU's cache cost bandwidth."};
  if (pair.host().software.maps_peer_memory == true)
    return {Effect::slows,
            "The IOMMU translates each peer access, as the GPU driver maps it: traffic goes up to "
            "the root complex even below one switch, and misses of the IOMMU's cache cost "
            "bandwidth."};
  if (!pair.host().software.maps_peer_memory)
    return {Effect::may_block,
            "The IOMMU translates, and the file does not say whether the GPU driver maps peer "
            "memory through it. Where the driver gives peers untranslated addresses, transfers "
            "hang, fault or read zeros."};
  return {Effect::blocks, untranslated};
}

/// Whether the initiator's own translation (ATS) decides the route, and the file leaves it open.
bool ats_is_open(const PairContext& pair) {
  const auto& open = pair.routes.open;
  return std::any_of(open.begin(), open.end(), [](const OpenQuestion& question) {
    return question.kind == OpenQuestion::Kind::ats;
  });
}

void translating(const PairContext& pair, RuleNotes& notes) {
  if (pair.routes.direct_translated || pair.graph().has_c2c(pair.graph().device(pair.target)))
    return;  // ATS, or a platform whose IOMMU is made for it
  if (ats_is_open(pair)) {
    notes.push_back(
        {"iommu-translating", Effect::unknown, pairs_place(),
         "The IOMMU translates, and the file does not say whether the device that "
         "starts the transfers has ATS switched on. With ATS they go direct; without, "
         "they pass the IOMMU.",
         "Read the ATSCtl line of the device as root, with lspci -vvv, and set \"ats\"."});
    return;
  }
  const bool nvidia_nic = pair.kind == PairKind::gpu_nic && !pair.hardware->is_amd_gpu(pair.target);
  const Said said = nvidia_nic ? of_nic(pair) : Said{Effect::blocks, untranslated};
  // This also holds between host bridges, where each access waits for the IOMMU as well, so that
  // such a pair does not avoid it.
  notes.push_back({"iommu-translating", said.effect, pairs_place(), said.reason,
                   said.effect == Effect::may_block ? remedy_or_state : remedy});
}

}  // namespace

void iommu_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.over_nvlink()) return;
  const Host& host = pair.host();
  if (host.software.iommu == IommuMode::translate) translating(pair, notes);
  if (!host.software.iommu && !host.virtual_machine.value_or(false))
    notes.push_back({"iommu-unknown", Effect::informs, host_place(),
                     "The file does not say whether the IOMMU translates; the verdict holds for "
                     "one that is off or in passthrough.",
                     "Look for iommu=pt in /proc/cmdline and for \"Default domain type\" in dmesg, "
                     "and set \"iommu\" in \"software\"."});
}

}  // namespace gdr
