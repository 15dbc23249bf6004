#pragma once

#include <optional>
#include <string>

#include "src/catalog/model_library.hpp"
#include "src/hardware/graph.hpp"

namespace gdr {

// The models behind the devices of a topology, with the fall-backs for what a file leaves out.

const GpuModel& gpu_model(const ModelLibrary& models, const Device& gpu);
const NicModel& nic_model(const ModelLibrary& models, const Device& nic);
/// Without a model, a drive of its link's generation.
const NvmeModel& nvme_model(const ModelLibrary& models, const Device& drive);
const SwitchModel& switch_model(const ModelLibrary& models, const Device& pci_switch);

/// The CPU of the socket that a device hangs below; nullptr when the file does not say which it is.
const CpuModel* cpu_of(const Graph& graph, const ModelLibrary& models, DeviceId device);

/// An AMD GPU, by its model or its PCI id.
bool is_amd_gpu(const ModelLibrary& models, const Device& gpu);
/// The library that GPUs of this kind run: "RCCL" (AMD's, which takes the same NCCL_ variables),
/// else "NCCL".
std::string collective_library(const ModelLibrary& models, const Device& gpu);
/// A GPU that is joined to a NUMA node by NVLink-C2C.
bool has_c2c(const Host& host, const Device& gpu);
/// A switch that software shows (QEMU's bridges): its model says so, or it is unnamed, in a virtual
/// machine and at 2.5 GT/s.
bool is_virtual_switch(const ModelLibrary& models, const Host& host, const Device& device);

/// NVIDIA's driver keeps this much of a GPU's BAR for itself (GPUDirect RDMA guide, "BAR space").
inline constexpr Bytes driver_bar_share{32ULL << 20U};
/// How much of a GPU's memory can be registered at a time: its BAR, without what NVIDIA's driver
/// keeps.
Bytes bar_window(const ModelLibrary& models, const Device& gpu);

Bytes max_payload_of(const ModelLibrary& models, const Device& device);
/// Network rate of a NIC: its ports in use together. A file that does not count them has one in
/// use.
Bandwidth network_rate(const ModelLibrary& models, const Device& nic);
/// True when RDMA packets of the NIC run over Ethernet.
bool runs_ethernet(const Topology& topology, const ModelLibrary& models, const Device& nic);

/// What the file says of a device's link, unless software shows it: the links of virtual bridges,
/// and 2.5 GT/s of an endpoint in a virtual machine or of a GPU that sits in the processor's
/// package. `believed` is then false and the model's link stands in.
struct LinkFact {
  std::optional<PcieLink> link;
  bool believed = true;
};
LinkFact link_of(const Graph& graph, const ModelLibrary& models, DeviceId device);

/// What the model that the file names can train; nullopt for a device without one.
std::optional<PcieLink> named_model_link(const ModelLibrary& models, const Device& device);
/// The fastest link between a device and the port above it: the file's capability, or what the
/// models of both can do. Where the port is not known, the link's own generation stands for it.
/// nullopt: the file names no model, or the GPU is one that NVLink joins to its CPU.
std::optional<PcieLink> trainable_link(const Graph& graph, const ModelLibrary& models,
                                       DeviceId device);
/// The fastest link of any CPU in the host; nullopt when one is not named.
std::optional<PcieLink> fastest_slot(const ModelLibrary& models, const Host& host);

/// Payload per second and direction of posted writes with TLPs of `max_payload`.
Bandwidth payload_rate(const ModelLibrary& models, PcieLink link, Bytes max_payload);

}  // namespace gdr
