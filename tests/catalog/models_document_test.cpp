// The tables of docs/models.md and src/topology/model_parameters.hpp must say the same.
#include <gtest/gtest.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "src/catalog/model_parameters.hpp"
#include "src/common/file.hpp"

namespace {

/// "BW opt": the type as the document abbreviates it, and whether it may be absent.
using Parameters = std::vector<std::pair<std::string, std::string>>;

template <typename T>
std::string type_name() {
  if (std::is_same_v<T, gdr::Bytes>) return "B";
  if (std::is_same_v<T, gdr::Bandwidth>) return "BW";
  if (std::is_same_v<T, gdr::Duration>) return "T";
  if (std::is_same_v<T, std::int64_t>) return "n";
  if (std::is_same_v<T, bool>) return "f";
  return "s";
}

struct Lister {
  Parameters* out;
  template <typename T>
  void required(const char* name, const gdr::Parameter<T>& /*parameter*/) {
    out->emplace_back(name, type_name<T>());
  }
  template <typename T>
  void optional(const char* name, const std::optional<gdr::Parameter<T>>& /*parameter*/) {
    out->emplace_back(name, type_name<T>() + " opt");
  }
};

template <typename Model>
Parameters in_code() {
  Parameters parameters;
  const Model model;
  gdr::visit_parameters(model, Lister{&parameters});
  return parameters;
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(" `"));
  text.erase(text.find_last_not_of(" `") + 1);
  return text;
}

/// Rows "| `name` | type | opt | meaning |" below each "### models/KIND".
std::map<std::string, Parameters> in_document() {
  std::map<std::string, Parameters> tables;
  std::istringstream in(gdr::read_file(std::string(GDR_PROJECT_DIR) + "/docs/models.md"));
  std::string kind;
  for (std::string line; std::getline(in, line);) {
    const std::string heading = "### models/";
    if (line.starts_with(heading)) kind = line.substr(heading.size());
    if (kind.empty() || !line.starts_with("| `")) continue;
    std::istringstream cells(line);
    std::string cell;
    std::vector<std::string> row;
    while (std::getline(cells, cell, '|')) row.push_back(trimmed(cell));
    if (row.size() < 5) ADD_FAILURE() << "not a row of four cells: " << line;
    else tables[kind].emplace_back(row[1], row[2] + (row[3].empty() ? "" : " " + row[3]));
  }
  return tables;
}

TEST(ModelsDocument, SaysWhatTheCodeReads) {
  const std::map<std::string, Parameters> code{
      {"cpu", in_code<gdr::CpuModel>()},       {"switch", in_code<gdr::SwitchModel>()},
      {"gpu", in_code<gdr::GpuModel>()},       {"nic", in_code<gdr::NicModel>()},
      {"nvme", in_code<gdr::NvmeModel>()},     {"nvlink", in_code<gdr::NvlinkModel>()},
      {"fabric", in_code<gdr::FabricModel>()}, {"pcie", in_code<gdr::PcieModel>()}};
  const auto document = in_document();
  for (const auto& [kind, parameters] : code) {
    ASSERT_TRUE(document.contains(kind)) << kind;
    EXPECT_EQ(document.at(kind), parameters) << kind;
  }
  EXPECT_EQ(document.size(), code.size());
}

}  // namespace
