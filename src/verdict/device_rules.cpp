#include <fmt/format.h>

#include "src/verdict/rules.hpp"

namespace gdr {
namespace {

std::string size_text(Bytes size) { return to_string(size); }

void gpu_class(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const Device& gpu = pair.device(id);
  const GpuModel& model = pair.hardware->gpu(id);
  if (!model.gpudirect_rdma.value) {
    const std::optional<bool> patched = pair.host().software.patched_driver;
    const bool gpus = pair.kind == PairKind::gpu_gpu;
    if (gpus && patched == true) return;
    notes.push_back(
        {"gpu-class-unsupported", gpus && !patched ? Effect::may_block : Effect::blocks,
         device_place(pair, id),
         fmt::format("The driver does not offer the memory of this class of GPU ({}) to other "
                     "PCIe devices{}.",
                     model.header.title,
                     gpus && !patched ? ", unless it was patched to do so" : ""),
         gpus && !patched
             ? "Use a data-centre or professional GPU; where the driver is patched, set "
               "\"patched_driver\" in \"software\"."
             : "Use a data-centre or professional GPU; no setting or module helps."});
  } else if (gpu.model.empty() && !gpu.gdr.value_or(false)) {
    notes.push_back(
        {"gpu-class-unknown", Effect::unknown, device_place(pair, id),
         "The file does not say which GPU this is, so whether its class can do GPUDirect RDMA is "
         "not known.",
         "Name its model (models/gpu lists them; lspci -nn or nvidia-smi -L shows which it is)."});
  }
}

void bar(const PairContext& pair, DeviceId id, RuleNotes& notes) {
  const Device& gpu = pair.device(id);
  const GpuModel& model = pair.hardware->gpu(id);
  const Bytes size = pair.hardware->bar_size(id);
  if (size >= model.memory_size.value || (gpu.model.empty() && !gpu.bar_size)) return;
  const bool amd = pair.hardware->is_amd_gpu(id);
  const Bytes window = pair.hardware->bar_window(id);
  const bool nothing_left = window == Bytes{};
  Effect effect =
      gpu.bar_size && *gpu.bar_size < model.bar_size.value ? Effect::costs : Effect::informs;
  if (nothing_left || amd) effect = Effect::blocks;
  std::string reason;
  if (amd) {
    reason = fmt::format(
        "The BAR maps {} of {} of memory, and amdgpu offers memory to peers only when all of it is "
        "mapped.",
        size_text(size), size_text(model.memory_size.value));
  } else if (nothing_left) {
    reason = fmt::format(
        "The BAR of {} leaves nothing beside the {} that the driver keeps, so no memory can be "
        "registered.",
        size_text(size), size_text(driver_bar_share));
  } else {
    reason = fmt::format(
        "The BAR maps {} of {} of memory, so at most about {} can be registered at a time.",
        size_text(size), size_text(model.memory_size.value), size_text(window));
  }
  notes.push_back({"bar-too-small", effect, device_place(pair, id), reason,
                   size < model.bar_size.value || amd
                       ? "Switch on Above 4G Decoding and Resizable BAR in the BIOS; in a virtual "
                         "machine, enlarge the 64-bit window."
                       : "Register small buffers and reuse them (UCX: smaller fragments); where "
                         "the card has a display mode, switch to its "
                         "compute mode."});
}

void nic(const PairContext& pair, RuleNotes& notes) {
  const NicModel& model = pair.hardware->nic(pair.initiator);
  if (model.rdma.value == "none")
    notes.push_back({"nic-without-rdma", Effect::blocks, device_place(pair, pair.initiator),
                     fmt::format("The NIC ({}) has no RDMA.", model.header.title),
                     "Use a NIC with RDMA."});
  for (const DeviceId id : {pair.initiator, pair.target})
    if (pair.device(id).gdr == false)
      notes.push_back(
          {"gdr-off", Effect::blocks, device_place(pair, id),
           "The driver or network plugin says that this device cannot do GPUDirect RDMA.",
           "Find out why: nvidia-peermem or dma-buf missing, a GPU class without it, or a plugin "
           "built "
           "without it "
           "(NCCL_DEBUG=INFO says)."});
}

}  // namespace

void device_rules(const PairContext& pair, RuleNotes& notes) {
  if (pair.over_nvlink()) return;
  gpu_class(pair, pair.target, notes);
  bar(pair, pair.target, notes);
  if (pair.kind == PairKind::gpu_gpu) {
    gpu_class(pair, pair.initiator, notes);
    bar(pair, pair.initiator, notes);
  }
  if (pair.kind == PairKind::gpu_nic) nic(pair, notes);
}

}  // namespace gdr
