#include "src/catalog/model_library.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <set>

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

template <typename T>
T read_value(const json::Node& node, Rule<T> allowed_instead) {
  T value = read_quantity<T>(node);
  if (const std::string allowed = allowed_instead(value); !allowed.empty())
    node.fail(json::describe(node.value()), allowed);
  return value;
}

/// Adds the source that the parameter names to `used`.
template <typename T>
Parameter<T> read_parameter(const json::Node& node, Rule<T> rule, const Sources& sources,
                            std::set<std::string>& used) {
  json::ObjectReader object(node);
  Parameter<T> parameter;
  parameter.value = read_value(object.required("value"), rule);
  if (const auto low = object.optional("low")) parameter.low = read_value(*low, rule);
  if (const auto high = object.optional("high")) parameter.high = read_value(*high, rule);
  if (parameter.low && *parameter.low > parameter.value) node.fail("\"low\" is above \"value\"");
  if (parameter.high && *parameter.high < parameter.value) node.fail("\"high\" is below \"value\"");
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
    return parameter;
  }
  const std::string key = source->string();
  const auto found = sources.find(key);
  if (found == sources.end())
    source->fail(fmt::format("\"{}\" is not among this file's sources", key));
  used.insert(key);
  parameter.basis = found->second;
  return parameter;
}

/// Reads parameters into the fields of a model.
struct ParameterReader {
  json::ObjectReader& object;
  const Sources& sources;
  std::set<std::string>& used;

  template <typename T>
  void operator()(const Declaration<T>& declaration, Parameter<T>& parameter) {
    parameter = read_parameter(object.required(declaration.name), declaration.rule, sources, used);
  }
  template <typename T>
  void operator()(const Declaration<T>& declaration, std::optional<Parameter<T>>& parameter) {
    if (const auto node = object.optional(declaration.name))
      parameter = read_parameter(*node, declaration.rule, sources, used);
  }
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
  if constexpr (requires { Model::trains_link; }) {
    const json::Node node = object.required("pcie");
    try {
      model.header.pcie = parse_pcie_link(node.string());
    } catch (const InputError& error) {
      node.fail(error.what());
    }
  }
}

/// A sentence on a parameter that the model lacks and its other parameters require, or an empty
/// string.
std::string missing_in(const CpuModel& model) {
  if (model.socket_links.value > 0 && (!model.socket_link_bandwidth || !model.socket_link_latency))
    return "\"socket_links\" is not 0, so \"socket_link_bandwidth\" and \"socket_link_latency\" "
           "are required";
  if (model.relaxed_ordering_needed.value && !model.strict_order_write_bandwidth)
    return "\"relaxed_ordering_needed\" is true, so \"strict_order_write_bandwidth\" is required";
  return {};
}

template <typename Model>
std::string missing_in(const Model& /*model*/) {
  return {};
}

template <typename Model>
Model read_model(const std::string& path, const std::string& name) {
  const json::Value document = json::parse_file(path);
  json::ObjectReader object(json::Node(document, path));
  object.expect_format();
  Model model;
  const json::Node kind_node = object.required("kind");
  if (kind_node.string() != Model::kind)
    kind_node.fail(fmt::format("\"{}\"", kind_node.string()),
                   fmt::format("\"{}\", as the folder says", Model::kind));
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

  std::set<std::string> used;
  json::ObjectReader parameters(object.required("parameters"));
  for_each_parameter(ParameterReader{parameters, sources, used}, model);
  parameters.finish();
  object.finish();
  if (const std::string problem = missing_in(model); !problem.empty()) object.node().fail(problem);
  for (const auto& [key, text] : sources)
    if (!used.contains(key))
      object.node().fail(fmt::format("the source \"{}\" is used by no parameter", key));
  return model;
}

}  // namespace

void missing_parameter(const std::string& model, const char* parameter) {
  throw InputError(
      fmt::format("models/software/{}.json has no parameter \"{}\"; add it", model, parameter));
}

std::vector<std::string> ModelLibrary::names(const std::string& kind) const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/" + kind, error))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

const AnyModel& ModelLibrary::find(std::string_view kind, const std::string& name) const {
  if (const auto of_kind = models_.find(kind); of_kind != models_.end())
    if (const auto model = of_kind->second.find(name); model != of_kind->second.end())
      return model->second;
  const std::string folder = fmt::format("{}/{}", folder_, kind);
  const AnyModel* found = nullptr;
  for_each_kind([&]<typename Model>() {
    if (kind != Model::kind) return;
    const auto there = names(Model::kind);
    if (std::find(there.begin(), there.end(), name) == there.end())
      throw InputError(fmt::format("no {} model \"{}\" in {}; there are: {}", kind, name, folder,
                                   fmt::join(there, ", ")));
    const std::string path = fmt::format("{}/{}.json", folder, name);
    Shared<Model> model = std::make_shared<const Model>(read_model<Model>(path, name));
    found = &models_[Model::kind].emplace(name, std::move(model)).first->second;
  });
  if (found == nullptr) throw InputError(fmt::format("\"{}\" is no kind of model", kind));
  return *found;
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
