// Every file of models/ and topologies/ loads, and a topology that is written and read again stays
// equal.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

namespace {

const std::string project = GDR_PROJECT_DIR;

std::vector<std::string> files_below(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(project + "/" + folder, error))
    if (entry.is_regular_file())
      files.push_back(std::filesystem::relative(entry.path(), project).string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(DataFiles, EveryModelLoads) {
  const gdr::ModelLibrary library(project + "/models");
  for (const std::string& file : files_below("models")) {
    // models/published holds cases, which their own tests read.
    if (file.starts_with("models/published/")) continue;
    const std::filesystem::path path(file);
    EXPECT_EQ(path.extension(), ".json") << file;
    try {
      (void)library.find(path.parent_path().lexically_relative("models").string(),
                         path.stem().string());
    } catch (const gdr::InputError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

/// Every model that a topology names exists.
void look_up_models(const gdr::ModelLibrary& library, const gdr::Topology& topology) {
  const auto known = [](const std::string& name) { return name.empty() ? "generic" : name; };
  for (const gdr::Host& host : topology.hosts) {
    for (const gdr::Socket& socket : host.sockets) (void)library.cpu(known(socket.model));
    for (const gdr::Device& device : host.devices) {
      const std::string kind(to_string(device.kind));
      if (kind == "gpu" || kind == "nic" || kind == "nvme" || kind == "switch")
        (void)library.find(kind, known(device.model));
    }
    for (const gdr::NvLink& link : host.nvlinks)
      if (!link.model.empty()) (void)library.nvlink(link.model);
  }
  if (topology.fabric) (void)library.fabric(topology.fabric->model);
}

TEST(DataFiles, EveryTopologyLoadsAndIsWrittenAndReadBack) {
  const gdr::ModelLibrary library(project + "/models");
  for (const std::string& file : files_below("topologies")) {
    if (!file.ends_with(".json")) continue;
    try {
      const gdr::Topology topology = gdr::load_topology(project + "/" + file);
      EXPECT_EQ(topology.name, std::filesystem::path(file).stem().string()) << file;
      EXPECT_EQ(
          gdr::read_topology(gdr::json::parse(gdr::json::dump(to_json(topology)), file), file, ""),
          topology)
          << file;
      look_up_models(library, topology);
    } catch (const gdr::InputError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
