#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/hardware/hardware.hpp"

namespace gdr {

// The verdict on a topology as plain data: which device pairs of a host reach each other directly,
// which do not, why, and what to do.

enum class PairKind { gpu_nic, gpu_gpu, nvme_gpu };
/// "gpu-nic", "gpu-gpu", "nvme-gpu"
std::string_view to_string(PairKind kind);

/// Where the paths from both devices meet: a PCIe switch, a host bridge (or several of one socket),
/// the link between sockets, NVLink.
enum class PairRoute { pci_switch, host_bridge, socket_link, nvlink, none };
/// "switch", "host-bridge", "socket-link", "nvlink", "none"
std::string_view to_string(PairRoute route);

/// The answer of Linux' P2PDMA rule (drivers/pci/p2pdma.c) for a pair.
enum class KernelP2pdma { direct, through_host_bridge, refused, unknown };
/// "direct", "through-host-bridge", "refused", "unknown"
std::string_view to_string(KernelP2pdma answer);

/// slow: it works, but the CPU's peer-to-peer limits or a link leave less than half of what the
/// slower of the two devices could carry, or an IOMMU translates each access. unknown: the file
/// lacks what decides.
enum class PairAnswer { works, slow, blocked, unknown };
std::string_view to_string(PairAnswer answer);

/// Bandwidth with which the initiator (NIC, first GPU, drive) reads from and writes into the target
/// GPU.
struct PairBandwidth {
  std::optional<Bandwidth> read;
  std::optional<Bandwidth> write;
  bool operator==(const PairBandwidth&) const = default;
};

struct Pair {
  PairKind kind = PairKind::gpu_nic;
  std::size_t host = 0;
  std::string from;  ///< "h0/gpu0"; the drive of an nvme-gpu pair
  std::string to;
  std::string
      distance;  ///< nvidia-smi's word: PIX, PXB, PHB, NODE, SYS, NV12; XGMI1 over AMD's links
  std::string nccl_distance;  ///< NCCL's word
  PairRoute route = PairRoute::none;
  std::optional<bool> redirected;  ///< ACS or the IOMMU sends requests or completions up to the
                                   ///< root port; nullopt: what decides is not in the file
  KernelP2pdma kernel_p2pdma = KernelP2pdma::unknown;
  PairAnswer answer = PairAnswer::unknown;
  PairBandwidth bandwidth;                ///< empty when blocked or unknown
  std::vector<std::string> findings;      ///< rule names
  std::optional<std::size_t> decided_by;  ///< index in Verdict::findings of the one that decides
                                          ///< the answer; nullopt: the pair works
  bool operator==(const Pair&) const = default;
};

struct Finding {
  std::string rule;
  /// error: a GPU whose best NIC pair on its host is blocked or slow. warning: a setting costs
  /// bandwidth or breaks ordering on the best pair of a GPU, or may block it. note: everything
  /// else. Remarks of an import have a severity of their own.
  Severity severity = Severity::note;
  std::size_t host = 0;
  std::string where;               ///< "h0/sw0 downstream port of h0/gpu0, bit RR"
  std::string message;             ///< one sentence: the reason, with numbers
  std::string remedy;              ///< one sentence
  std::vector<std::size_t> pairs;  ///< indices in Verdict::pairs of the pairs that it concerns
  bool operator==(const Finding&) const = default;
};

/// The best NIC of a GPU: the nearest one, unless it is blocked, or is slow and another with a
/// better answer has more bandwidth. GPUs with the same set of equally good NICs are assigned
/// round-robin.
struct BestPair {
  std::size_t host = 0;
  std::string gpu;
  std::size_t pair = 0;  ///< index in Verdict::pairs
  bool operator==(const BestPair&) const = default;
};

struct Verdict {
  std::vector<Pair> pairs;
  std::vector<Finding> findings;  ///< errors first
  std::vector<BestPair> best;
  bool operator==(const Verdict&) const = default;
};

/// The finding that decides the answer of a pair; nullptr for one that works.
const Finding* finding_of(const Verdict& verdict, const Pair& pair);

/// Upper bound of a pair from the links' payload rates, peer-to-peer, BAR and engine limits, read
/// window and posted credits.
PairBandwidth bandwidth_bound(const Hardware& hardware, DeviceId initiator, DeviceId target);

/// Judges every GPU-NIC, GPU-GPU and NVMe-GPU pair of each host. Hosts that differ only in their
/// name are judged once. Throws InputError when a model that the topology names does not exist.
Verdict judge(const Graph& graph, const ModelLibrary& models);

/// Hosts that are equal but for their name, as lists of indices in file order.
std::vector<std::vector<std::size_t>> same_hosts(const Topology& topology);

}  // namespace gdr
