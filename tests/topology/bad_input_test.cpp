// Every file of tests/bad is refused with the line in NAME.expected. A new case needs files, not
// code: published/NAME.json   topology/NAME.json [+ NAME.set: one --set text per line]
//   models/KIND/NAME.json   xml/NAME.xml, each with NAME.expected beside it
// Paths in .expected start at the project's folder. GDR_WRITE_EXPECTED=1 writes missing files;
// review them before you keep them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/study/published.hpp"
#include "src/topology/topology_json.hpp"

namespace {

const std::string project = std::string(GDR_PROJECT_DIR) + "/";
const std::string bad = project + "tests/bad/";

/// A path below tests/bad. Cases refer to the files in topology/servers.
std::vector<std::string> cases() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bad)) {
    const std::string file = std::filesystem::relative(entry.path(), bad).string();
    const bool input = file.ends_with(".json") || file.ends_with(".xml");
    if (input && !file.starts_with("topology/servers/")) files.push_back(file);
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<gdr::Setting> settings_of(const std::string& path) {
  std::vector<gdr::Setting> settings;
  if (!std::filesystem::exists(path)) return settings;
  std::istringstream in(gdr::read_file(path));
  for (std::string line; std::getline(in, line);) settings.push_back(gdr::parse_setting(line));
  return settings;
}

void load_model(const std::filesystem::path& file) {
  const gdr::ModelLibrary library(bad + "models");
  const std::string kind = file.parent_path().filename().string();
  const std::string name = file.stem().string();
  if (kind == "cpu") (void)library.cpu(name);
  if (kind == "switch") (void)library.pci_switch(name);
  if (kind == "gpu") (void)library.gpu(name);
  if (kind == "nic") (void)library.nic(name);
  if (kind == "nvme") (void)library.nvme(name);
  if (kind == "nvlink") (void)library.nvlink(name);
  if (kind == "fabric") (void)library.fabric(name);
}

void load(const std::string& file) {
  const std::string path = bad + file;
  const std::string stem = path.substr(0, path.rfind('.'));
  if (file.starts_with("models/")) load_model(path);
  else if (file.starts_with("published/")) (void)gdr::sim::load_published({path}, "topologies");
  else if (file.starts_with("topology/"))
    (void)gdr::load_topology(path, settings_of(stem + ".set"));
  else if (file.starts_with("xml/")) (void)gdr::import_nccl_xml(std::vector<std::string>{path});
  else throw gdr::InputError("no reader for this folder of tests/bad");
}

std::string without_project(std::string text) {
  for (std::size_t at = 0; (at = text.find(project, at)) != std::string::npos;)
    text.erase(at, project.size());
  return text;
}

class BadInput : public testing::TestWithParam<std::string> {};

TEST_P(BadInput, IsRefusedWithItsLine) {
  const std::string& file = GetParam();
  const std::string expected = (bad + file).substr(0, (bad + file).rfind('.')) + ".expected";
  std::string message = "accepted";
  try {
    load(file);
  } catch (const gdr::InputError& error) {
    message = without_project(error.what());
  }
  const char* const write = std::getenv("GDR_WRITE_EXPECTED");
  if (write != nullptr && !std::filesystem::exists(expected))
    gdr::write_file(expected, message + "\n");
  EXPECT_EQ(message + "\n", gdr::read_file(expected));
  EXPECT_EQ(message.find('\n'), std::string::npos) << "not one line";
}

std::string test_name(const testing::TestParamInfo<std::string>& file) {
  std::string name = file.param;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Files, BadInput, testing::ValuesIn(cases()), test_name);

TEST(BadInputFiles, EveryExpectationHasItsInput) {
  std::vector<std::string> orphans;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(bad)) {
    if (entry.path().extension() != ".expected") continue;
    std::filesystem::path input = entry.path();
    if (!std::filesystem::exists(input.replace_extension(".json")) &&
        !std::filesystem::exists(input.replace_extension(".xml")))
      orphans.push_back(entry.path().string());
  }
  EXPECT_EQ(orphans, std::vector<std::string>{});
}

}  // namespace
