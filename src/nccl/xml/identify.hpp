#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// Finds models by PCI ids, RCCL's gcn and cpuid. What no model claims, or two claim, stays without
/// a model.
class Identifier {
 public:
  /// Without a library nothing is found.
  explicit Identifier(const ModelLibrary* models);

  /// Name of the model of a switch, GPU, NIC or NVMe drive; empty when not known.
  [[nodiscard]] std::string device_model(const Device& device) const;
  /// Name of the model of a NUMA node's <cpu>; empty when not known.
  [[nodiscard]] std::string cpu_model(const NcclElement& cpu) const;
  /// By vendor ("GenuineIntel"), family and model as /proc/cpuinfo has them.
  [[nodiscard]] std::string cpu_model(const std::string& vendor, int family, int model) const;
  /// The kind of device whose models claim this id; nullopt: none, or several kinds.
  [[nodiscard]] std::optional<DeviceKind> kind_of(const std::string& pci_id) const;

 private:
  std::map<std::pair<DeviceKind, std::string>, std::string> devices_;
  std::map<std::string, std::string> amd_gpus_;  ///< by gfx name
  std::map<std::tuple<std::string, int, int>, std::string> cpus_;
};

/// RCCL's gcn as the compiler's name of the architecture: 908 or gfx908 is gfx908, 910 is gfx90a.
/// Empty when the element has none.
std::string gfx_name(const NcclElement& gpu);

/// Family as /proc/cpuinfo has it: NCCL shifts the extended family by four bits too many, so that
/// AMD's family 25 becomes 175.
int cpu_family(std::int64_t nccl_family);
/// The way back.
int nccl_family(int cpu_family);

}  // namespace gdr::nccl
