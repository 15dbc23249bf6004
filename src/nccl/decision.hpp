#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/nccl/rules.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// NCCL's settings by the names of their environment variables.
using Environment = std::map<std::string, std::string>;

/// Reads "NAME=VALUE" lines, with or without "export"; ignores comments and other variables. Throws
/// InputError on a line without "=".
Environment parse_environment(std::string_view text, const std::string& name);

/// NCCL_IB_HCA, "[^][=]name[:port],...": selects NICs whose RDMA device's name starts with `name`;
/// = compares whole names, ^ inverts the selection.
bool hca_selected(std::string_view spec, std::string_view rdma_device, int port);

/// What a version of NCCL does with a GPU and a NIC of one host.
struct PairDecision {
  std::size_t gpu = 0;  ///< device
  std::size_t nic = 0;
  int rank = 0;
  int gpu_dev = 0;
  int net = 0;
  PathType wired = PathType::dis;  ///< as the devices are wired
  PathType distance =
      PathType::dis;  ///< what NCCL compares with the level: with PXN, the path through a relay GPU
  std::optional<int> number;  ///< distance without a PathType: NODE of 2.4 and 2.5
  PathType level = PathType::pxb;
  std::optional<std::size_t> relay;  ///< device index of the relay GPU (PXN)
  bool receive = false;              ///< the NIC writes into GPU memory
  std::optional<bool>
      send;  ///< the NIC reads GPU memory; nullopt: depends on facts that the topology lacks
  std::string reason;    ///< one sentence that explains the decision
  std::string log_line;  ///< what this version prints; empty: nothing
};

struct Decision {
  std::string version;
  std::vector<PairDecision> pairs;
  std::vector<std::vector<std::size_t>>
      nics_of_gpu;  ///< for each GPU in order: the devices that its channels use round-robin
  std::vector<std::size_t> gpus;   ///< devices
  std::vector<std::string> notes;  ///< settings that this version interprets differently or ignores
};

/// NCCL's decisions for one host. From 2.12 on they follow nccl::view(); for 2.3 to 2.11 only the
/// rules for distance and reading apply, without PXN and the choice of NICs. Throws InputError for
/// other versions and for values that no version accepts.
Decision decide(const Topology& topology, std::size_t host, const ModelLibrary& models,
                const std::string& version, const Environment& environment);

}  // namespace gdr::nccl
