#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// Finds models by PCI ids, RCCL's gcn and cpuid. A key identifies a model only if exactly one
/// model claims it.
class Identifier {
 public:
  /// nullptr: finds nothing.
  explicit Identifier(const ModelLibrary* models);

  /// The model of a switch, GPU, NIC or NVMe drive; empty if unknown.
  [[nodiscard]] std::string device_model(const Device& device) const;
  /// The model of a NUMA node's <cpu>; empty if unknown.
  [[nodiscard]] std::string cpu_model(const NcclElement& cpu) const;
  /// By vendor ("GenuineIntel"), family and model as /proc/cpuinfo has them.
  [[nodiscard]] std::string cpu_model(const std::string& vendor, int family, int model) const;
  /// The kind of device whose models claim this id; nullopt if no kind or several do.
  [[nodiscard]] std::optional<DeviceKind> kind_of(const std::string& pci_id) const;

 private:
  std::map<std::pair<DeviceKind, std::string>, std::string> devices_;
  std::map<std::string, std::string> amd_gpus_;  ///< by gfx name
  std::map<std::tuple<std::string, int, int>, std::string> cpus_;
};

/// The compiler's name of the architecture in RCCL's gcn: gfx908 for 908 and gfx908, gfx90a for
/// 910. Empty if the element has no gcn.
std::string gfx_name(const NcclElement& gpu);

/// The family in /proc/cpuinfo's numbering: NCCL shifts the extended family by four bits too many,
/// so AMD's family 25 becomes 175.
int cpu_family(std::int64_t nccl_family);
/// The inverse.
int nccl_family(int cpu_family);

}  // namespace gdr::nccl
