#include "src/cli/input.hpp"

#include <filesystem>

#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr::cli {

Topology load_input(const std::string& path, const std::vector<Setting>& settings,
                    const ModelLibrary* models) {
  std::error_code error;
  if (path != "-" && std::filesystem::is_directory(path, error))
    return read_topology(to_json(import_machine({path}, models)), path, "", settings);
  const NamedText input = read_input(path);
  if (recognise(input) != InputKind::topology)
    return read_topology(to_json(import_machine(std::vector<NamedText>{input}, models)), input.name,
                         "", settings);
  return read_topology(json::parse(input.text, input.name), input.name,
                       std::filesystem::path(path).parent_path().string(), settings);
}

}  // namespace gdr::cli
