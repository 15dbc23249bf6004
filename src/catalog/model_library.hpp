#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/catalog/model.hpp"

namespace gdr {

/// Every model of a folder (pcie/, cpu/, switch/, gpu/, nic/, nvme/, nvlink/, fabric/), read when
/// it is first asked for. Lookups throw InputError when the model does not exist (naming those that
/// do) or its file is wrong.
class ModelLibrary {
 public:
  explicit ModelLibrary(std::string folder);
  ~ModelLibrary();
  ModelLibrary(ModelLibrary&&) noexcept;
  ModelLibrary& operator=(ModelLibrary&&) noexcept;

  /// models/pcie/gen1 to gen6.
  [[nodiscard]] const PcieModel& pcie(int generation) const;
  [[nodiscard]] const CpuModel& cpu(const std::string& name) const;
  [[nodiscard]] const SwitchModel& pci_switch(const std::string& name) const;
  [[nodiscard]] const GpuModel& gpu(const std::string& name) const;
  [[nodiscard]] const NicModel& nic(const std::string& name) const;
  [[nodiscard]] const NvmeModel& nvme(const std::string& name) const;
  [[nodiscard]] const NvlinkModel& nvlink(const std::string& name) const;
  [[nodiscard]] const FabricModel& fabric(const std::string& name) const;

  /// The same library with one model in place of the one of its name (any of the eight kinds). What
  /// was read is shared.
  template <typename Model>
  [[nodiscard]] ModelLibrary with(Model model) const;

  /// Names of all models of a kind, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& kind) const;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  struct Cache;
  std::string folder_;
  std::unique_ptr<Cache> cache_;
};

/// The folder that holds models/ and topologies/: $GDR_DATA_DIR, else ../share/gdr beside the
/// running program's folder (an installed tool), else `given` (what gdrConfig.cmake calls
/// gdr_DATA_DIR, or a source tree), else share/gdr below the prefix the library was configured for.
/// Throws InputError when none exists.
std::string data_folder(const std::string& given = {});

}  // namespace gdr
