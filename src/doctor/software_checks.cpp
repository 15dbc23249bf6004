#include <fmt/format.h>

#include <algorithm>

#include "src/common/version.hpp"
#include "src/doctor/checks.hpp"

namespace gdr::doctor {
namespace {

std::optional<bool> peermem_loaded(const Facts& facts) {
  if (facts.modules_seen.contains("nvidia_peermem") || facts.modules_seen.contains("nv_peer_mem"))
    return true;
  if (facts.modules) return false;
  return std::nullopt;
}

bool old_kernel(const Facts& facts) {
  return !facts.kernel.empty() && version_before(facts.kernel, "5.12");
}
bool old_cuda(const Facts& facts) {
  return !facts.cuda.empty() && version_before(facts.cuda, "11.7");
}

/// nullopt: unknown.
std::optional<bool> dma_buf(const Facts& facts) {
  if (old_kernel(facts) || old_cuda(facts) || facts.open_modules == false) return false;
  if (facts.kernel.empty() || facts.cuda.empty() || !facts.open_modules) return std::nullopt;
  return true;
}

void peermem(const Facts& facts, Checks& checks) {
  const auto loaded = peermem_loaded(facts);
  const auto by_dma_buf = dma_buf(facts);
  if (!loaded) {
    checks.push_back({"peermem-unknown", State::unknown, Severity::note,
                      "The inputs do not say which modules are loaded.",
                      "Run lsmod and look for nvidia_peermem."});
  } else if (!*loaded) {
    const bool needed = by_dma_buf != true;
    checks.push_back(
        {"peermem-missing", needed ? State::problem : State::fine,
         by_dma_buf == false ? Severity::error : Severity::warning,
         needed
             ? "nvidia_peermem is not loaded, and it is unknown whether dma-buf can take its place."
             : "nvidia_peermem is not loaded; dma-buf takes its place (NCCL 2.13 and newer).",
         "Load it (modprobe nvidia-peermem) and keep it loaded through /etc/modules-load.d."});
  } else {
    checks.push_back(
        {"peermem-loaded", State::fine, Severity::note, "nvidia_peermem is loaded.", ""});
  }
  // Newer kernels and the inbox ib_core have no such path; libraries that search for it take the
  // module for missing.
  if (loaded == true && facts.memory_peers == false)
    checks.push_back(
        {"peermem-not-seen", State::problem, Severity::warning,
         fmt::format(
             "nvidia_peermem is loaded, but /sys/kernel/mm/memory_peers does not exist{}: "
             "libraries that look for the path take the module for missing, though it works{}.",
             facts.kernel.empty() ? "" : fmt::format(" (Linux {})", facts.kernel),
             facts.peer_client_symbol == true
                 ? "; the kernel does export ib_register_peer_memory_client"
                 : ""),
         "Use an NCCL that looks at /sys/module/nvidia_peermem as well (2.22 and newer), an RCCL "
         "that looks at /proc/kallsyms, or dma-buf."});
}

void symbols(const Facts& facts, Checks& checks) {
  if (says(facts, "Unknown symbol", "nvidia_p2p_"))
    checks.push_back(
        {"peermem-symbol-mismatch", State::problem, Severity::error,
         "The module for peer memory does not find the driver's nvidia_p2p functions: "
         "it belongs to another NVIDIA driver than the loaded one, or was loaded before it.",
         "Load nvidia before nvidia_peermem, and use the nvidia_peermem that came "
         "with the driver."});
  const std::string symbol = "ib_register_peer_memory_client";
  const bool unknown = says(facts, "Unknown symbol", symbol);
  const bool version = says(facts, "disagrees about version of symbol", symbol);
  if (!unknown && !version) return;
  checks.push_back(
      {"peermem-symbol-mismatch", State::problem, Severity::error,
       unknown
           ? "The module for peer memory does not find ib_register_peer_memory_client: the "
             "loaded ib_core is not the one it was built for (OFED installed after the driver, or "
             "the kernel's own ib_core, which "
             "has no such function)."
           : "The module for peer memory was built against another ib_core than the loaded one.",
       "Rebuild the NVIDIA module after installing OFED (dkms autoinstall, or reinstall the "
       "driver); with the kernel's own ib_core use dma-buf: open "
       "kernel modules, CUDA 11.7, Linux 5.12."});
}

void direct(const Facts& facts, Checks& checks) {
  if (old_kernel(facts))
    checks.push_back({"kernel-too-old", State::problem,
                      peermem_loaded(facts) == true ? Severity::note : Severity::warning,
                      fmt::format("Linux {} cannot register dma-buf memory for RDMA, which came "
                                  "with 5.12: only nvidia-peermem is left.",
                                  facts.kernel),
                      "Load nvidia-peermem, or use Linux 5.12 or newer."});
  else if (!facts.kernel.empty())
    checks.push_back({"kernel-has-dma-buf", State::fine, Severity::note,
                      fmt::format("Linux {} can register dma-buf memory for RDMA.", facts.kernel),
                      ""});
  if (old_cuda(facts))
    checks.push_back({"cuda-too-old", State::problem,
                      peermem_loaded(facts) == true ? Severity::note : Severity::warning,
                      fmt::format("CUDA {} cannot export GPU memory as dma-buf, which came with "
                                  "11.7: only nvidia-peermem is left.",
                                  facts.cuda),
                      "Load nvidia-peermem, or use CUDA 11.7 or newer."});
  if (facts.open_modules == false && peermem_loaded(facts) != true)
    checks.push_back(
        {"closed-kernel-modules", State::problem, Severity::warning,
         "NVIDIA's proprietary kernel modules are loaded, which cannot export dma-buf.",
         "Load nvidia-peermem, or install the open kernel modules (Turing and newer)."});
  if (says(facts, "ibv_reg_dmabuf_mr", "Operation not supported") ||
      says(facts, "ibv_reg_dmabuf_mr", "EOPNOTSUPP"))
    checks.push_back(
        {"dma-buf-not-supported-by-driver", State::problem, Severity::error,
         fmt::format(
             "ibv_reg_dmabuf_mr fails with \"not supported\": the NIC's driver{} has no dma-buf.",
             facts.ofed.empty() ? "" : " (" + facts.ofed + ")"),
         "Set NCCL_DMABUF_ENABLE=0 with nvidia-peermem loaded, or use a newer driver and an NCCL "
         "newer than 2.13, whose fallback works."});
  if (says(facts, "EPROTONOSUPPORT") || says(facts, "Protocol not supported"))
    checks.push_back(
        {"dma-buf-not-in-kernel", State::problem, Severity::error,
         "Registering dma-buf memory fails with EPROTONOSUPPORT: the kernel's RDMA core "
         "cannot do it (before 5.12).",
         "Use nvidia-peermem, or Linux 5.12 or newer."});
}

}  // namespace

void software_checks(const Facts& facts, Checks& checks) {
  peermem(facts, checks);
  symbols(facts, checks);
  direct(facts, checks);
}

}  // namespace gdr::doctor
