#include <fmt/format.h>

#include <algorithm>

#include "src/common/version.hpp"
#include "src/doctor/checks.hpp"

namespace gdr::doctor {
namespace {

/// Cloud kernels come without rdma_rxe; distributions put it into a package of its own.
std::string package_of_rxe(const std::string& kernel) {
  if (kernel.ends_with("-generic") || kernel.ends_with("-aws") || kernel.ends_with("-azure") ||
      kernel.ends_with("-gcp") || kernel.ends_with("-oracle"))
    return fmt::format(
        "Install linux-modules-extra-{}, or boot a kernel of your own (gdr emulate brings one).",
        kernel);
  if (kernel.find("cloud") != std::string::npos)
    return "Use linux-image-amd64 in place of the cloud kernel, or a kernel of your own (gdr "
           "emulate brings one).";
  return "Install the kernel's extra modules, or use a kernel of your own (gdr emulate brings "
         "one).";
}

}  // namespace

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

void rxe_checks(const Facts& facts, Checks& checks) {
  const bool missing = says(facts, "rdma_rxe", "not found") || facts.rxe_module == false;
  if (missing)
    checks.push_back(
        {"rxe-missing", State::problem, Severity::note,
         fmt::format("The kernel{} has no rdma_rxe module: SoftRoCE is not available here.",
                     facts.kernel.empty() ? "" : " " + facts.kernel),
         package_of_rxe(facts.kernel)});
  else if (facts.rxe_module == true || facts.modules_seen.contains("rdma_rxe"))
    checks.push_back({"rxe-available", State::fine, Severity::note, "rdma_rxe is there.", ""});
  if (says(facts, "rdma_rxe/parameters/add"))
    checks.push_back(
        {"rxe-old-command", State::problem, Severity::note,
         fmt::format("/sys/module/rdma_rxe/parameters/add is gone since Linux 5.17{}.",
                     facts.kernel.empty() ? "" : fmt::format(" (this is {})", facts.kernel)),
         "Use rdma link add rxe0 type rxe netdev INTERFACE."});
  if (says(facts, "does not support the kernel ABI") || says(facts, "does not support kernel ABI"))
    checks.push_back(
        {"rdma-core-clash", State::problem, Severity::warning,
         "libibverbs finds a driver that does not know the kernel's interface: user space of "
         "MLNX_OFED is mixed with the kernel's own RDMA.",
         "Use the distribution's rdma-core with the kernel's own modules, or OFED's of both."});
  if (says(facts, "rnr_retry=7"))
    checks.push_back({"infinite-rnr-retry", State::problem, Severity::warning,
                      "rnr_retry 7 means for ever: where the receiver posts too late, rdma_rxe "
                      "resends without end, which old kernels answer with a soft lockup.",
                      "Use rnr_retry 6 or less on SoftRoCE, and post receives before sends."});
  if (!facts.kernel.empty() && facts.modules_seen.contains("rdma_rxe") &&
      version_before(facts.kernel, "6.2"))
    checks.push_back({"rxe-without-atomic-write", State::problem, Severity::note,
                      fmt::format("rdma_rxe of Linux {} has no atomic write, which came with 6.2.",
                                  facts.kernel),
                      "Use Linux 6.2 or newer where a program needs it."});
}

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
