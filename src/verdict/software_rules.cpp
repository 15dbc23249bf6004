#include <fmt/format.h>

#include "src/common/version.hpp"
#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

constexpr const char* first_dma_buf_kernel = "5.12";  // verbs that register dma-buf memory
constexpr const char* first_dma_buf_cuda = "11.7";    // export of device memory as dma-buf
constexpr int turing = 75;                            // the oldest GPUs of the open kernel modules

bool old_kernel(const Software& software) {
  return !software.kernel.empty() && version_before(software.kernel, first_dma_buf_kernel);
}
bool old_cuda(const Software& software) {
  return !software.cuda.empty() && version_before(software.cuda, first_dma_buf_cuda);
}

/// True for a GPU too old for NVIDIA's open kernel modules, which dma-buf export needs.
bool old_gpu(const PairContext& pair) {
  const auto& capability = pair.hardware->gpu(pair.target).compute_capability;
  return capability && capability->value < turing;
}

void old_versions(const PairContext& pair, Effect effect, RuleNotes& notes) {
  const Software& software = pair.host().software;
  const std::string rest =
      effect == Effect::blocks ? "" : ", so that only nvidia-peermem can register GPU memory";
  if (old_kernel(software))
    notes.push_back(
        {"kernel-too-old", effect, host_place(),
         fmt::format("Linux {} cannot register dma-buf memory for RDMA, which came with {}{}.",
                     software.kernel, first_dma_buf_kernel, rest),
         "Load nvidia-peermem, or use Linux 5.12 or newer with CUDA 11.7 or newer and the open "
         "kernel modules."});
  if (old_cuda(software))
    notes.push_back(
        {"cuda-too-old", effect, host_place(),
         fmt::format("CUDA {} cannot export GPU memory as dma-buf, which came with {}{}.",
                     software.cuda, first_dma_buf_cuda, rest),
         "Load nvidia-peermem, or use CUDA 11.7 or newer with Linux 5.12 or newer and the open "
         "kernel modules."});
}

void peermem_missing(const PairContext& pair, RuleNotes& notes) {
  const Software& software = pair.host().software;
  const std::optional<bool> dma_buf = dma_buf_possible(pair);
  const bool plugin_says_yes =
      pair.initiator_device().gdr.value_or(false) && pair.gpu().gdr.value_or(false);
  Effect effect = Effect::unknown;
  std::string reason =
      "nvidia-peermem is not loaded, and the file does not say whether dma-buf can take its place";
  if (dma_buf == true || plugin_says_yes) {
    effect = Effect::informs;
    reason =
        "nvidia-peermem is not loaded; GPU memory is registered through dma-buf, which NCCL does "
        "from 2.13 on";
  } else if (dma_buf == false) {
    effect = Effect::blocks;
    reason =
        "nvidia-peermem is not loaded and dma-buf cannot take its place, so registering GPU memory "
        "fails (errno 14, Bad address)";
    if (old_gpu(pair))
      reason += "; dma-buf needs the open kernel modules, which serve Turing and newer GPUs";
    else if (software.open_kernel_modules == false)
      reason += "; dma-buf needs NVIDIA's open kernel modules";
  }
  notes.push_back(
      {"peermem-missing", effect, host_place(), reason + ".",
       "Load it (modprobe nvidia-peermem) and keep it loaded through /etc/modules-load.d."});
  if (effect == Effect::blocks) old_versions(pair, Effect::blocks, notes);
}

}  // namespace

std::optional<bool> dma_buf_possible(const PairContext& pair) {
  const Software& software = pair.host().software;
  if (old_kernel(software) || old_cuda(software) || software.open_kernel_modules == false ||
      old_gpu(pair))
    return false;
  if (software.kernel.empty() || software.cuda.empty() || !software.open_kernel_modules)
    return std::nullopt;
  return true;
}

void software_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.kind != PairKind::gpu_nic || pair.hardware->is_amd_gpu(pair.target)) return;
  if (!pair.hardware->gpu(pair.target).gpudirect_rdma.value) return;  // no module helps that class
  // EFA's driver asks NVIDIA's itself; a NIC without RDMA registers nothing.
  if (pair.hardware->nic(pair.initiator).rdma.value != "verbs") return;
  const Software& software = pair.host().software;
  if (software.nvidia_peermem == false) {
    peermem_missing(pair, notes);
    return;
  }
  old_versions(pair, Effect::informs, notes);
  const std::optional<bool> dma_buf = dma_buf_possible(pair);
  const bool drivers_say_yes =
      pair.initiator_device().gdr.value_or(false) && pair.gpu().gdr.value_or(false);
  if (!software.nvidia_peermem && dma_buf != true && !drivers_say_yes) {
    const bool decides = dma_buf == false;
    notes.push_back(
        {"peermem-unknown", decides ? Effect::unknown : Effect::informs, host_place(),
         decides ? "The file does not say whether nvidia-peermem is loaded, and dma-buf cannot "
                   "take its place."
                 : "The file states neither that nvidia-peermem is loaded nor that dma-buf "
                   "works; the verdict assumes that one of them does.",
         "Look with lsmod for nvidia_peermem and set \"nvidia_peermem\" in \"software\"."});
  }
  if (software.nvidia_peermem == true && !software.kernel.empty() &&
      !version_before(software.kernel, "6.4") && !software.nccl_version.empty() && dma_buf != true)
    notes.push_back({"peermem-not-seen", Effect::informs, host_place(),
                     fmt::format("Linux {} may have no /sys/kernel/mm/memory_peers, where older "
                                 "NCCL and RCCL look for nvidia-peermem, which "
                                 "then seems missing.",
                                 software.kernel),
                     "If NCCL logs that GPU Direct RDMA is disabled although the module is loaded, "
                     "use a newer NCCL or dma-buf."});
}

}  // namespace gdr
