#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/units.hpp"
#include "src/topology/topology.hpp"

namespace gdr::study {

/// How many GPU-NIC pairs of a server have which answer.
struct Counts {
  std::size_t works = 0;
  std::size_t slow = 0;
  std::size_t blocked = 0;
  std::size_t unknown = 0;
};

/// What one server is worth: its first host against an equal one, each GPU sending to its
/// counterpart through its best NIC; by GPUDirect RDMA where the verdict lets it, staged through
/// host memory where it does not.
struct Column {
  std::string name;
  std::size_t gpus = 0;
  std::size_t nics = 0;  ///< with RDMA
  Counts pairs;
  std::size_t direct = 0;                  ///< GPUs that go by GPUDirect RDMA
  std::optional<Bandwidth> alone;          ///< of a GPU that sends alone, the mean
  std::optional<Bandwidth> together;       ///< of a GPU with all at once, the mean
  std::optional<Bandwidth> least;          ///< of the GPU that gets the least with all at once
  std::string worst;                       ///< that GPU, with its NIC: "gpu3 with nic1"
  std::optional<double> oversubscription;  ///< alone / together
  std::optional<Duration> latency;         ///< of 8 B, the mean
  std::optional<Bandwidth>
      host_memory;   ///< reads and writes of host memory on one host, with all at once
  std::string note;  ///< why figures are missing
};

/// Throws InputError for models that do not exist.
Column column_of(sim::Simulator& simulator, const Topology& topology, const ModelLibrary& models);

}  // namespace gdr::study
