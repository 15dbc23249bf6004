#include <fmt/format.h>

#include "src/common/version.hpp"
#include "src/doctor/checks.hpp"

namespace gdr::doctor {

void limit_checks(const Facts& facts, Checks& checks) {
  constexpr std::uint64_t little = 1U << 20U;  // 1 GiB in KiB
  if (facts.locked_memory_unlimited) {
    checks.push_back(
        {"locked-memory", State::fine, Severity::note, "Locked memory is not limited.", ""});
  } else if (facts.locked_memory_kib && *facts.locked_memory_kib < little) {
    checks.push_back({"locked-memory-limited", State::problem,
                      *facts.locked_memory_kib <= 65536 ? Severity::warning : Severity::note,
                      fmt::format("At most {} KiB of memory may be locked (ulimit -l): registering "
                                  "more fails, for host memory and for bounce buffers.",
                                  *facts.locked_memory_kib),
                      "Set memlock to unlimited in /etc/security/limits.d, for systemd services "
                      "LimitMEMLOCK=infinity, for containers --ulimit memlock=-1."});
  }
  const bool forced = facts.write_ordering.find("force_relax") != std::string::npos;
  if (forced && !facts.nccl.empty() && version_before(facts.nccl, "2.8"))
    checks.push_back(
        {"relaxed-ordering-unsafe", State::problem, Severity::error,
         fmt::format("The NIC is forced to relaxed ordering, which NCCL {} does not expect: data "
                     "can arrive after the flag that announces it.",
                     facts.nccl),
         "Use NCCL 2.8 or newer, or set PCI_WR_ORDERING back to per_mkey (mlxconfig)."});
  if (says(facts, "vendor err 129") || says(facts, "vendor err 0x81") ||
      says(facts, "vendor err 81"))
    checks.push_back(
        {"completion-error-0x81", State::problem, Severity::warning,
         "Completions fail with vendor error 0x81: the NIC's requests to the GPU were not "
         "answered, as when ACS or the IOMMU turns them away.",
         "Look at ReqRedir and CmpltRedir of all bridges (lspci -vvv as root) and at the IOMMU; "
         "what the BIOS says does not count, and a container sees the same host."});
}

}  // namespace gdr::doctor
