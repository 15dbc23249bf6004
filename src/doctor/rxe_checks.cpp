#include <fmt/format.h>

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

}  // namespace gdr::doctor
