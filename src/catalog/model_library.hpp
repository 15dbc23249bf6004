#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "src/catalog/model.hpp"

namespace gdr {

/// The models of a folder with a subfolder for each kind (cpu/, gpu/...). A model is read when it
/// is first asked for. Lookups throw InputError when it does not exist (naming those that do) or
/// its file is wrong.
class ModelLibrary {
 public:
  explicit ModelLibrary(std::string folder) : folder_(std::move(folder)) {}

  template <typename Model>
  [[nodiscard]] const Model& get(const std::string& name) const {
    return *std::get<Shared<Model>>(find(Model::kind, name));
  }
  [[nodiscard]] const AnyModel& find(std::string_view kind, const std::string& name) const;

  /// models/pcie/gen1 to gen6.
  [[nodiscard]] const PcieModel& pcie(int generation) const {
    return get<PcieModel>("gen" + std::to_string(generation));
  }
  [[nodiscard]] const CpuModel& cpu(const std::string& name) const { return get<CpuModel>(name); }
  [[nodiscard]] const SwitchModel& pci_switch(const std::string& name) const {
    return get<SwitchModel>(name);
  }
  [[nodiscard]] const GpuModel& gpu(const std::string& name) const { return get<GpuModel>(name); }
  [[nodiscard]] const NicModel& nic(const std::string& name) const { return get<NicModel>(name); }
  [[nodiscard]] const NvmeModel& nvme(const std::string& name) const {
    return get<NvmeModel>(name);
  }
  [[nodiscard]] const NvlinkModel& nvlink(const std::string& name) const {
    return get<NvlinkModel>(name);
  }
  [[nodiscard]] const FabricModel& fabric(const std::string& name) const {
    return get<FabricModel>(name);
  }
  [[nodiscard]] const SoftwareModel& software(const std::string& name) const {
    return get<SoftwareModel>(name);
  }

  /// The same library with `model` in place of the one of its kind and name. What was read is
  /// shared.
  template <typename Model>
  [[nodiscard]] ModelLibrary with(Model model) const {
    ModelLibrary other = *this;
    Shared<Model> shared = std::make_shared<const Model>(std::move(model));
    other.models_[Model::kind].insert_or_assign(shared->header.name, shared);
    return other;
  }

  /// Names of all models of a kind, sorted.
  [[nodiscard]] std::vector<std::string> names(const std::string& kind) const;
  [[nodiscard]] const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
  mutable std::map<std::string, std::map<std::string, AnyModel>, std::less<>> models_;
};

/// The folder that holds models/ and topologies/: $GDR_DATA_DIR, else ../share/gdr beside the
/// running program's folder (an installed tool), else `given` (what gdrConfig.cmake calls
/// gdr_DATA_DIR, or a source tree), else share/gdr below the prefix the library was configured for.
/// Throws InputError when none exists.
std::string data_folder(const std::string& given = {});

}  // namespace gdr
