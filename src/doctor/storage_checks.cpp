#include <fmt/format.h>

#include "src/doctor/checks.hpp"

namespace gdr::doctor {

void storage_checks(const Facts& facts, Checks& checks) {
  if (facts.gds_nvme == "Unsupported")
    checks.push_back(
        {"gds-nvme-unsupported", State::problem, Severity::error,
         "gdscheck says that NVMe is not supported: the NVMe driver has no GPUDirect Storage, so "
         "that files are copied through host memory, or refused without compatibility mode.",
         "Install the NVMe driver of MLNX_OFED or DOCA with GDS support (or Linux 6.2 and CUDA "
         "12.8 with PCI P2PDMA); only then look at where drive and GPU hang."});
  for (const auto& [point, options] : facts.mounts) {
    if (!options.starts_with("ext4,") || options.find("data=ordered") != std::string::npos ||
        facts.gds_nvme.empty())
      continue;
    checks.push_back({"gds-mount-option", State::problem, Severity::warning,
                      fmt::format("{} is ext4 without data=ordered among its mount options, which "
                                  "GPUDirect Storage asks for.",
                                  point),
                      "Mount it with data=ordered."});
  }
}

}  // namespace gdr::doctor
