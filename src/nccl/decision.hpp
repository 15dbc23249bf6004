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

/// What a user sets of NCCL, by the names of its environment variables.
using Environment = std::map<std::string, std::string>;

/// "NAME=VALUE" lines, also with export in front; comments and other variables are passed over.
/// Throws InputError: a line without "=".
Environment parse_environment(std::string_view text, const std::string& name);

/// NCCL_IB_HCA: "[^][=]name[:port],..." selects NICs by the beginning of their RDMA device's name,
/// with = by the whole name, with ^ all but those.
bool hca_selected(std::string_view spec, std::string_view rdma_device, int port);

/// What NCCL of a version does with a GPU and a NIC of one host.
struct PairDecision {
  std::size_t gpu = 0;  ///< device
  std::size_t nic = 0;
  int rank = 0;
  int gpu_dev = 0;
  int net = 0;
  PathType wired = PathType::dis;  ///< as the devices are joined
  PathType distance =
      PathType::dis;          ///< what NCCL compares with the level: through a relay GPU with PXN
  std::optional<int> number;  ///< of a distance that has no PathType: NODE of 2.4 and 2.5
  PathType level = PathType::pxb;
  std::optional<std::size_t> relay;  ///< device of the GPU that stands in (PXN)
  bool receive = false;              ///< the NIC writes into GPU memory
  std::optional<bool> send;  ///< the NIC reads GPU memory; nullopt: depends on facts that the
                             ///< topology does not have
  std::string reason;        ///< a sentence: why not, or why
  std::string log_line;      ///< what this version prints; empty: nothing
};

struct Decision {
  std::string version;
  std::vector<PairDecision> pairs;
  std::vector<std::vector<std::size_t>>
      nics_of_gpu;                ///< for each GPU in order: devices that its channels take in turn
  std::vector<std::size_t> gpus;  ///< devices
  std::vector<std::string> notes;  ///< settings that this version reads differently or not at all
};

/// Of one host. From 2.12 on as nccl::view has it; 2.3 to 2.11 by their distance and read rules
/// alone, without PXN and the choice of NICs. Throws InputError for other versions and for values
/// that no version takes.
Decision decide(const Topology& topology, std::size_t host, const ModelLibrary& models,
                const std::string& version, const Environment& environment);

}  // namespace gdr::nccl
