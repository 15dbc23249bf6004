#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

constexpr const char* remedy =
    "Boot with iommu=pt (passthrough), or switch the IOMMU off in the BIOS or with intel_iommu=off "
    "or amd_iommu=off.";

void translating(const PairContext& pair, RuleNotes& notes) {
  if (pair.routes.direct_translated || pair.graph().has_c2c(pair.graph().device(pair.target)))
    return;  // ATS, or a platform whose IOMMU is made for it
  const bool mapped = pair.kind == PairKind::gpu_nic && !pair.hardware->is_amd_gpu(pair.target) &&
                      dma_buf_possible(pair).value_or(false);
  // Also between host bridges: there, too, each access waits for the IOMMU, so that such a pair is
  // no way round it.
  notes.push_back({"iommu-translating", mapped ? Effect::slows : Effect::blocks, pairs_place(),
                   mapped ? "The IOMMU translates each peer access, as dma-buf maps it: traffic "
                            "goes up to the root complex even below one "
                            "switch, and misses of the IOMMU's cache cost bandwidth."
                          : "The IOMMU translates, and GPU drivers give peers untranslated "
                            "addresses: transfers hang, fault or bring zeros.",
                   remedy});
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
