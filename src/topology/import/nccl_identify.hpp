#pragma once

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "topology/model_library.hpp"
#include "topology/topology.hpp"

namespace gdr::nccl {

/// Finds models by PCI ids and cpuid. What no model claims, or two claim, stays without a model.
class Identifier {
 public:
  /// Without a library nothing is found.
  explicit Identifier(const ModelLibrary* models);

  /// Name of the model of a switch, GPU, NIC or NVMe drive; empty when not known.
  [[nodiscard]] std::string device_model(DeviceKind kind, const std::string& pci_id) const;
  /// Name of the model of a NUMA node's <cpu>; empty when not known.
  [[nodiscard]] std::string cpu_model(const NcclElement& cpu) const;
  /// A fabric for this link layer.
  [[nodiscard]] std::string fabric_model(LinkLayer layer) const;

 private:
  std::map<std::pair<DeviceKind, std::string>, std::string> devices_;
  std::map<std::tuple<std::string, int, int>, std::string> cpus_;
  std::map<std::string, std::string> fabrics_;
};

/// Family as /proc/cpuinfo has it: NCCL shifts the extended family by four bits too many, so that AMD's family 25 becomes 175.
int cpu_family(std::int64_t nccl_family);
/// The way back.
int nccl_family(int cpu_family);

}  // namespace gdr::nccl
