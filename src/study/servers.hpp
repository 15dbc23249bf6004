#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/units.hpp"
#include "src/topology/topology.hpp"

namespace gdr::study {

/// The number of GPU-NIC pairs of a server with each answer.
struct Counts {
  std::size_t works = 0;
  std::size_t slow = 0;
  std::size_t blocked = 0;
  std::size_t unknown = 0;
};

/// The figures of one server: its first host with an equal one, each GPU sending to its counterpart
/// through its best NIC, by GPUDirect RDMA where the verdict admits it and else staged through host
/// memory.
struct Column {
  std::string name;
  std::size_t gpus = 0;
  std::size_t nics = 0;  ///< with RDMA
  Counts pairs;
  std::size_t direct = 0;                  ///< GPUs that use GPUDirect RDMA
  std::optional<Bandwidth> alone;          ///< mean of the GPUs, each sending alone
  std::optional<Bandwidth> together;       ///< mean of the GPUs, all sending at once
  std::optional<Bandwidth> least;          ///< of the slowest GPU, all sending at once
  std::string worst;                       ///< that GPU, with its NIC: "gpu3 with nic1"
  std::optional<double> oversubscription;  ///< alone / together
  std::optional<Duration> latency;         ///< mean of the GPUs, for 8 B
  std::optional<Bandwidth>
      host_memory;   ///< reads and writes of host memory on one host, all GPUs sending at once
  std::string note;  ///< why figures are missing
};

/// Throws InputError for models that do not exist.
Column column_of(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models);

}  // namespace gdr::study
