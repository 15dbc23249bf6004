#include "src/catalog/model_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include "src/catalog/model_parameters.hpp"
#include "src/catalog/model_rules.hpp"
#include "src/common/error.hpp"
#include "src/common/json_reader.hpp"

namespace gdr {
namespace {

using Sources = std::map<std::string, std::string>;

template <typename T>
T read_quantity(const json::Node& node) {
  if constexpr (std::is_same_v<T, Bytes>) return node.bytes();
  if constexpr (std::is_same_v<T, Bandwidth>) return node.bandwidth();
  if constexpr (std::is_same_v<T, Duration>) return node.duration();
  if constexpr (std::is_same_v<T, std::int64_t>) return node.integer(0, 1'000'000'000'000);
  if constexpr (std::is_same_v<T, bool>) return node.boolean();
  if constexpr (std::is_same_v<T, std::string>) return node.string();
}

class ParameterReader {
 public:
  ParameterReader(json::ObjectReader& object, const Sources& sources,
                  std::map<std::string, bool>& used)
      : object_(object), sources_(sources), used_(used) {}

  template <typename T>
  void required(const char* name, Parameter<T>& parameter) {
    read(object_.required(name), name, parameter);
  }
  template <typename T>
  void optional(const char* name, std::optional<Parameter<T>>& parameter) {
    if (const auto node = object_.optional(name)) read(*node, name, parameter.emplace());
  }

 private:
  template <typename T>
  static T read_value(const json::Node& node, const char* name) {
    T value = read_quantity<T>(node);
    if (const std::string allowed = allowed_instead(name, value); !allowed.empty())
      node.fail(json::describe(node.value()), allowed);
    return value;
  }

  template <typename T>
  void read(const json::Node& node, const char* name, Parameter<T>& parameter) {
    json::ObjectReader object(node);
    parameter.value = read_value<T>(object.required("value"), name);
    if (const auto low = object.optional("low")) parameter.low = read_value<T>(*low, name);
    if (const auto high = object.optional("high")) parameter.high = read_value<T>(*high, name);
    if (parameter.low && *parameter.low > parameter.value) node.fail("\"low\" is above \"value\"");
    if (parameter.high && *parameter.high < parameter.value)
      node.fail("\"high\" is below \"value\"");
    if (const auto note = object.optional("note")) (void)note->string();
    const auto source = object.optional("source");
    const auto estimate = object.optional("estimate");
    object.finish();
    if (source.has_value() == estimate.has_value())
      node.fail("exactly one of \"source\" and \"estimate\" must say where the value comes from");
    parameter.estimate = estimate.has_value();
    if (estimate) {
      parameter.basis = estimate->string();
      if (parameter.basis.empty()) estimate->fail("an estimate must say what it rests on");
      return;
    }
    const std::string key = source->string();
    const auto found = sources_.find(key);
    if (found == sources_.end())
      source->fail(fmt::format("\"{}\" is not among this file's sources", key));
    used_[key] = true;
    parameter.basis = found->second;
  }

  json::ObjectReader& object_;
  const Sources& sources_;
  std::map<std::string, bool>& used_;
};

std::vector<std::string> read_pci_ids(const json::Node& list) {
  std::vector<std::string> ids;
  for (const json::Node& node : list.array()) {
    ids.push_back(node.string());
    if (!is_pci_id(ids.back()))
      node.fail(json::describe(node.value()),
                "vendor:device in lower-case hexadecimal, as in \"10de:20b0\"");
  }
  return ids;
}

void read_kind_members(json::ObjectReader& object, CpuModel& model) {
  model.pcie_generation = static_cast<int>(object.required("pcie_generation").integer(1, 6));
  model.pcie_lanes = static_cast<int>(object.required("pcie_lanes").integer(1, 1024));
  static constexpr std::array<std::string_view, 3> archs{"x86_64", "arm64", "ppc64"};
  model.arch = archs.at(object.required("arch").choice(archs));
  const auto identities = object.optional("cpuid");  // not every architecture has one
  for (const json::Node& node : identities ? identities->array() : std::vector<json::Node>{}) {
    json::ObjectReader identity(node);
    CpuIdentity& cpuid = model.cpuid.emplace_back();
    cpuid.vendor = identity.required("vendor").string();
    cpuid.family = static_cast<int>(identity.required("family").integer(0, 4095));
    for (const json::Node& number : identity.required("models").array())
      cpuid.models.push_back(static_cast<int>(number.integer(0, 4095)));
    identity.finish();
  }
  model.host_bridge_ids = read_pci_ids(object.required("host_bridge_ids"));
}

template <typename Model>
void read_kind_members(json::ObjectReader& object, Model& model) {
  constexpr bool has_pcie = !std::is_same_v<Model, NvlinkModel> &&
                            !std::is_same_v<Model, FabricModel> &&
                            !std::is_same_v<Model, PcieModel>;
  if constexpr (has_pcie) {
    const json::Node node = object.required("pcie");
    try {
      model.header.pcie = parse_pcie_link(node.string());
    } catch (const InputError& error) {
      node.fail(error.what());
    }
  }
}

template <typename Model>
Model read_model(const std::string& path, const std::string& kind, const std::string& name) {
  const json::Value document = json::parse_file(path);
  json::ObjectReader object(json::Node(document, path));
  object.expect_format();
  Model model;
  const json::Node kind_node = object.required("kind");
  if (kind_node.string() != kind)
    kind_node.fail(fmt::format("\"{}\"", kind_node.string()),
                   fmt::format("\"{}\", as the folder says", kind));
  const json::Node name_node = object.required("name");
  model.header.name = name_node.name();
  if (model.header.name != name)
    name_node.fail(fmt::format("\"{}\"", model.header.name),
                   fmt::format("\"{}\", as the file name says", name));
  model.header.title = object.required("title").string();
  if (const auto ids = object.optional("pci_ids")) model.header.pci_ids = read_pci_ids(*ids);
  if (const auto note = object.optional("note")) (void)note->string();

  Sources sources;
  json::ObjectReader source_object(object.required("sources"));
  for (const auto& [key, node] : source_object.all()) sources[key] = node.string();
  read_kind_members(object, model);

  std::map<std::string, bool> used;
  json::ObjectReader parameters(object.required("parameters"));
  visit_parameters(model, ParameterReader(parameters, sources, used));
  parameters.finish();
  object.finish();
  if (const std::string problem = missing_in(model); !problem.empty()) object.node().fail(problem);
  for (const auto& [key, text] : sources)
    if (!used.contains(key))
      object.node().fail(fmt::format("the source \"{}\" is used by no parameter", key));
  return model;
}

template <typename Model>
using Models = std::map<std::string, std::shared_ptr<const Model>>;

}  // namespace

struct ModelLibrary::Cache {
  Models<PcieModel> pcie;
  Models<CpuModel> cpu;
  Models<SwitchModel> pci_switch;
  Models<GpuModel> gpu;
  Models<NicModel> nic;
  Models<NvmeModel> nvme;
  Models<NvlinkModel> nvlink;
  Models<FabricModel> fabric;

  void put(PcieModel model) { place(pcie, std::move(model)); }
  void put(CpuModel model) { place(cpu, std::move(model)); }
  void put(SwitchModel model) { place(pci_switch, std::move(model)); }
  void put(GpuModel model) { place(gpu, std::move(model)); }
  void put(NicModel model) { place(nic, std::move(model)); }
  void put(NvmeModel model) { place(nvme, std::move(model)); }
  void put(NvlinkModel model) { place(nvlink, std::move(model)); }
  void put(FabricModel model) { place(fabric, std::move(model)); }

 private:
  template <typename Model>
  static void place(Models<Model>& models, Model model) {
    const std::string name = model.header.name;
    models[name] = std::make_shared<const Model>(std::move(model));
  }
};

ModelLibrary::ModelLibrary(std::string folder)
    : folder_(std::move(folder)), cache_(std::make_unique<Cache>()) {}
template <typename Model>
ModelLibrary ModelLibrary::with(Model model) const {
  ModelLibrary other(folder_);
  *other.cache_ = *cache_;
  other.cache_->put(std::move(model));
  return other;
}
template ModelLibrary ModelLibrary::with(PcieModel model) const;
template ModelLibrary ModelLibrary::with(CpuModel model) const;
template ModelLibrary ModelLibrary::with(SwitchModel model) const;
template ModelLibrary ModelLibrary::with(GpuModel model) const;
template ModelLibrary ModelLibrary::with(NicModel model) const;
template ModelLibrary ModelLibrary::with(NvmeModel model) const;
template ModelLibrary ModelLibrary::with(NvlinkModel model) const;
template ModelLibrary ModelLibrary::with(FabricModel model) const;
ModelLibrary::~ModelLibrary() = default;
ModelLibrary::ModelLibrary(ModelLibrary&&) noexcept = default;
ModelLibrary& ModelLibrary::operator=(ModelLibrary&&) noexcept = default;

std::vector<std::string> ModelLibrary::names(const std::string& kind) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + kind, error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

template <typename Model>
const Model& look_up(const ModelLibrary& library, Models<Model>& models, const std::string& kind,
                     const std::string& name) {
  if (const auto found = models.find(name); found != models.end()) return *found->second;
  const auto names = library.names(kind);
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw InputError(fmt::format("no {} model \"{}\" in {}/{}; there are: {}", kind, name,
                                 library.folder(), kind, fmt::join(names, ", ")));
  const std::string path = fmt::format("{}/{}/{}.json", library.folder(), kind, name);
  return *models.emplace(name, std::make_shared<const Model>(read_model<Model>(path, kind, name)))
              .first->second;
}

}  // namespace

const PcieModel& ModelLibrary::pcie(int generation) const {
  return look_up(*this, cache_->pcie, "pcie", fmt::format("gen{}", generation));
}
const CpuModel& ModelLibrary::cpu(const std::string& name) const {
  return look_up(*this, cache_->cpu, "cpu", name);
}
const SwitchModel& ModelLibrary::pci_switch(const std::string& name) const {
  return look_up(*this, cache_->pci_switch, "switch", name);
}
const GpuModel& ModelLibrary::gpu(const std::string& name) const {
  return look_up(*this, cache_->gpu, "gpu", name);
}
const NicModel& ModelLibrary::nic(const std::string& name) const {
  return look_up(*this, cache_->nic, "nic", name);
}
const NvmeModel& ModelLibrary::nvme(const std::string& name) const {
  return look_up(*this, cache_->nvme, "nvme", name);
}
const NvlinkModel& ModelLibrary::nvlink(const std::string& name) const {
  return look_up(*this, cache_->nvlink, "nvlink", name);
}
const FabricModel& ModelLibrary::fabric(const std::string& name) const {
  return look_up(*this, cache_->fabric, "fabric", name);
}

namespace {

/// share/gdr beside the folder of the running program: an installed tool takes its own data,
/// wherever it was moved.
std::string data_beside_program() {
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string()
               : (program.parent_path() / GDR_RELATIVE_DATA_DIR).lexically_normal().string();
}

}  // namespace

std::string data_folder(const std::string& given) {
  const auto holds_models = [](const std::string& folder) {
    std::error_code error;
    return !folder.empty() && std::filesystem::is_directory(folder + "/models", error);
  };
  if (const char* chosen = std::getenv("GDR_DATA_DIR"); chosen != nullptr && *chosen != '\0') {
    if (!holds_models(chosen))
      throw InputError(
          fmt::format("GDR_DATA_DIR={} holds no folder models/; set it to the folder that has "
                      "models/ and topologies/",
                      chosen));
    return chosen;
  }
  std::vector<std::string> folders{data_beside_program(), given, GDR_INSTALL_DATA_DIR};
  std::erase(folders, "");
  for (const std::string& folder : folders)
    if (holds_models(folder)) return folder;
  throw InputError(
      fmt::format("the model files are in none of {}; set GDR_DATA_DIR to the folder that has "
                  "models/ and topologies/",
                  fmt::join(folders, ", ")));
}

}  // namespace gdr
