// The tables of docs/models.md follow from the declarations of src/catalog/model.hpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "src/catalog/model.hpp"
#include "src/common/file.hpp"

namespace {

const std::string document = std::string(GDR_PROJECT_DIR) + "/docs/models.md";

template <typename T>
std::string type_name() {
  if (std::is_same_v<T, gdr::Bytes>) return "B";
  if (std::is_same_v<T, gdr::Bandwidth>) return "BW";
  if (std::is_same_v<T, gdr::Duration>) return "T";
  if (std::is_same_v<T, std::int64_t>) return "n";
  if (std::is_same_v<T, bool>) return "f";
  return "s";
}

struct TableWriter {
  std::string& table;

  template <typename T>
  void operator()(const gdr::Declaration<T>& said, const gdr::Parameter<T>& /*parameter*/) {
    add(said, "");
  }
  template <typename T>
  void operator()(const gdr::Declaration<T>& said,
                  const std::optional<gdr::Parameter<T>>& /*parameter*/) {
    add(said, "opt");
  }

 private:
  template <typename T>
  void add(const gdr::Declaration<T>& said, const std::string& optional) {
    EXPECT_STRNE(said.meaning, "") << said.name;
    table += "| `" + std::string(said.name) + "` | " + type_name<T>() + " | " + optional + " | " +
             said.meaning + " |\n";
  }
};

template <typename Model>
std::string table_of() {
  std::string table = "| parameter | type | | meaning |\n|---|---|---|---|\n";
  const Model model;
  gdr::for_each_parameter(TableWriter{table}, model);
  return table;
}

/// The document with the declarations' table below each "### models/KIND".
std::string with_tables_of_the_code(const std::string& text) {
  std::string result = text;
  gdr::for_each_kind([&]<typename Model>() {
    const std::string heading = "\n### models/" + std::string(Model::kind) + "\n\n";
    const auto found = result.find(heading);
    ASSERT_NE(found, std::string::npos) << document << " has no heading" << heading;
    const auto begin = found + heading.size();
    auto end = begin;
    while (end < result.size() && result[end] == '|') end = result.find('\n', end) + 1;
    result.replace(begin, end - begin, table_of<Model>());
  });
  return result;
}

TEST(ModelsDocument, SaysWhatTheCodeDeclares) {
  const std::string text = gdr::read_file(document);
  const std::string expected = with_tables_of_the_code(text);
  if (std::getenv("GDR_WRITE_EXPECTED") != nullptr) std::ofstream(document) << expected;
  else EXPECT_EQ(text, expected) << "run this test with GDR_WRITE_EXPECTED=1 to write the tables";
}

TEST(ModelsDocument, NoKindDeclaresANameTwice) {
  gdr::for_each_kind([]<typename Model>() {
    std::set<std::string> names;
    const Model model;
    gdr::for_each_parameter(
        [&](const auto& said, const auto& /*parameter*/) {
          EXPECT_TRUE(names.insert(said.name).second) << Model::kind << ": " << said.name;
        },
        model);
    EXPECT_FALSE(names.empty()) << Model::kind;
  });
}

}  // namespace
