#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/doctor/checks.hpp"

namespace gdr::doctor {
namespace {

/// "DMAR:" alone proves nothing: every machine with VT-d prints it at boot.
bool has_iommu_faults(const Facts& facts) {
  return says(facts, "IO_PAGE_FAULT") || says(facts, "DMAR:", "fault addr") ||
         says(facts, "DMAR:", "handling fault") || says(facts, "DMAR: [DMA");
}

/// The driver refuses GeForce memory with EINVAL; other errors of this call have other causes.
bool is_refused_class(const Facts& facts) {
  if (!facts.gpu_name.empty()) return facts.gpu_name.find("GeForce") != std::string::npos;
  return says(facts, "nvidia_p2p_get_pages", "-22") &&
         !says(facts, "Unknown symbol", "nvidia_p2p_get_pages");
}

}  // namespace

void device_checks(const Facts& facts, Checks& checks) {
  if (!facts.rdma_devices.empty()) {
    std::vector<std::string> names;
    for (const std::string& device : facts.rdma_devices) {
      const auto layer = facts.layers.find(device);
      names.push_back(layer != facts.layers.end() ? fmt::format("{} ({})", device, layer->second)
                                                  : device);
    }
    checks.push_back({"hca-present", State::fine, Severity::note,
                      fmt::format("RDMA devices: {}.", fmt::join(names, ", ")), ""});
  }
  if (is_refused_class(facts))
    checks.push_back(
        {"gpu-class-unsupported", State::problem, Severity::error,
         fmt::format("{}: GeForce GPUs do not share their memory with other PCIe devices, whatever "
                     "modules are loaded.",
                     facts.gpu_name.empty() ? "nvidia_p2p_get_pages fails" : facts.gpu_name),
         "Use a data-centre or professional GPU; no setting helps."});
  if (has_iommu_faults(facts))
    checks.push_back({"iommu-faults", State::problem, Severity::error,
                      "The kernel's log has IOMMU faults: accesses of a device were refused.",
                      "Boot with iommu=pt (passthrough), or disable the IOMMU."});
  if (facts.iommu == IommuMode::translate)
    checks.push_back({"iommu-translating", State::problem, Severity::error,
                      "The IOMMU translates: peer transfers hang, fault or read zeros.",
                      "Boot with iommu=pt (passthrough), or disable the IOMMU in the BIOS."});
  else if (facts.iommu)
    checks.push_back(
        {"iommu-lets-through", State::fine, Severity::note,
         facts.iommu == IommuMode::off ? "The IOMMU is off." : "The IOMMU is in passthrough.", ""});
}

}  // namespace gdr::doctor
