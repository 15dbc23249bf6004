#pragma once

#include <set>
#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/topology/topology.hpp"

namespace gdr::nccl {

/// Invents the elements of devices that came from no NCCL file. Numbering continues after the
/// stored elements.
class Inventor {
 public:
  Inventor(const Host& host, std::size_t host_index, const ModelLibrary* models);

  /// The elements of a switch, GPU or NIC; empty for other kinds.
  std::vector<NcclElement> device(const Device& device);
  std::vector<NcclElement> numa_node(const NumaNode& numa);
  /// gpu, or nic and its nets, for a pci element that lacks them.
  NcclElement gpu(const Device& device);
  std::vector<NcclElement> nic(const Device& device);
  NcclElement net(const Device& device, int port);
  /// The device's bus id, invented if it has none; the same for each call.
  const std::string& bus_id(const Device& device);
  /// Sets vendor, familyid, modelid and arch from `model`.
  void set_cpu(NcclElement& cpu, const std::string& model) const;
  /// MB/s of one C2C link to a CPU; 0 if unknown or not such a link.
  [[nodiscard]] int c2c_bandwidth(const NvLink& link) const;

 private:
  [[nodiscard]] bool has_model(const std::string& kind, const std::string& name) const {
    return known_models_.contains({kind, name});
  }
  [[nodiscard]] const GpuModel* gpu_model(const Device& device) const;
  [[nodiscard]] const NicModel* nic_model(const Device& device) const;
  [[nodiscard]] const CpuModel* cpu_model(const std::string& name) const;
  [[nodiscard]] std::string pci_id(const Device& device) const;

  const Host& host_;
  std::size_t host_index_;
  const ModelLibrary* models_;
  std::set<std::pair<std::string, std::string>> known_models_;
  std::set<std::string> addresses_;
  std::vector<std::string> bus_ids_;  ///< by device index
  std::int64_t next_gpu_ = 0;
  std::int64_t next_net_ = 0;
  std::int64_t first_core_ = 0;
};

}  // namespace gdr::nccl
