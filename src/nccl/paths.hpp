#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "src/nccl/rules.hpp"
#include "src/nccl/search.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

// How a version of NCCL sees a host: how far apart GPUs and NICs are, where it uses GPUDirect RDMA
// and peer-to-peer, and which NIC each GPU uses. Assumptions: one job with ranks on this and
// another host, peer-to-peer between all GPUs, no MNNVL, no NIC fusion (2.24 and newer), no pair
// that uses the network because its NICs are faster. A GPU or NIC counts as capable of GPUDirect
// RDMA unless Device::gdr says otherwise. Bandwidths are NCCL's own numbers in GB/s, not
// predictions of gdr.

struct Gpu {
  std::size_t device = 0;  ///< index in the host's devices
  int rank = 0;
  int dev = 0;
  int sm = 0;  ///< compute capability; 0: unknown
};

/// A port of a NIC.
struct Net {
  std::size_t device = 0;
  int dev = 0;
  std::string name;
  float gigabytes_per_second = 0;
};

struct GpuNet {
  Path path;                     ///< NCCL's final path
  Path own_path;                 ///< as wired, without a relay GPU (PXN) or a detour over the CPU
  std::size_t relay = 0;         ///< the GPU whose NIC access is used; the GPU itself without PXN
  bool gdr_write = false;        ///< the NIC writes into GPU memory: receiving
  std::optional<bool> gdr_read;  ///< the NIC reads GPU memory: sending; nullopt: depends on the
                                 ///< unknown compute capability
};

struct GpuGpu {
  Path path;
  bool p2p = false;
};

struct View {
  std::vector<Gpu> gpus;
  std::vector<Net> nets;
  std::vector<std::vector<GpuNet>> gpu_nets;  ///< [gpu][net]
  std::vector<std::vector<GpuGpu>> gpu_gpus;  ///< [gpu][gpu]
  std::vector<std::vector<std::size_t>>
      local_nets;  ///< [gpu]: channel c uses element c modulo the size; empty: no net
};

/// Throws InputError for a version that is not modelled and for hosts larger than NCCL allows.
View view(const Topology& topology, std::size_t host, const ModelLibrary* models,
          const Settings& settings);

}  // namespace gdr::nccl
