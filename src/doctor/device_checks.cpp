#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "doctor/checks.hpp"

namespace gdr::doctor {
namespace {

bool says(const Facts& facts, std::string_view a) {
  return std::any_of(facts.messages.begin(), facts.messages.end(), [&](const std::string& line) { return line.find(a) != std::string::npos; });
}

}  // namespace

void device_checks(const Facts& facts, Checks& checks) {
  if (!facts.rdma_devices.empty()) {
    std::vector<std::string> names;
    for (const std::string& device : facts.rdma_devices) {
      const auto layer = facts.layers.find(device);
      names.push_back(layer != facts.layers.end() ? fmt::format("{} ({})", device, layer->second) : device);
    }
    checks.push_back({"hca-present", State::fine, Severity::note, fmt::format("RDMA devices: {}.", fmt::join(names, ", ")), ""});
  }
  if (facts.gpu_name.find("GeForce") != std::string::npos || says(facts, "nvidia_p2p_get_pages"))
    checks.push_back({"gpu-class-unsupported", State::problem, Severity::error,
                      fmt::format("{}: GeForce GPUs offer no memory to other PCIe devices, whatever modules are loaded.",
                                  facts.gpu_name.empty() ? "nvidia_p2p_get_pages fails" : facts.gpu_name),
                      "Use a data-centre or professional GPU; no setting helps."});
  if (says(facts, "IO_PAGE_FAULT") || says(facts, "DMAR:"))
    checks.push_back({"iommu-faults", State::problem, Severity::error, "The kernel's log has faults of the IOMMU: accesses of a device were refused.",
                      "Boot with iommu=pt (passthrough), or switch the IOMMU off."});
  if (facts.iommu == IommuMode::translate)
    checks.push_back({"iommu-translating", State::problem, Severity::error, "The IOMMU translates: peer transfers hang, fault or bring zeros.",
                      "Boot with iommu=pt (passthrough), or switch the IOMMU off in the BIOS."});
  else if (facts.iommu)
    checks.push_back({"iommu-lets-through", State::fine, Severity::note, facts.iommu == IommuMode::off ? "The IOMMU is off." : "The IOMMU is in passthrough.", ""});
}

}  // namespace gdr::doctor
