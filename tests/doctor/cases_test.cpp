// Problems that people reported, one per folder of tests/cases: their files and the expected
// answer. The answer must be the same after a change of names, order or an irrelevant field, and
// the finding must disappear with its cause.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "src/common/file.hpp"
#include "src/common/json_reader.hpp"
#include "src/doctor/doctor.hpp"

namespace gdr {
namespace {

namespace fs = std::filesystem;
const std::string folder = std::string(GDR_PROJECT_DIR) + "/tests/cases";

const ModelLibrary& models() {
  static const ModelLibrary library(std::string(GDR_PROJECT_DIR) + "/models");
  return library;
}

struct Expected {
  std::string rule;
  std::string severity;
  std::vector<std::string> says;
};

struct Case {
  std::string name;
  std::vector<NamedText> inputs;
  std::vector<Expected> find;
  std::vector<std::string> absent;
  std::vector<std::string> says_remedy;  ///< remedy of the first finding
  std::vector<std::pair<std::string, std::string>> same;
  std::vector<std::pair<std::string, std::string>> cure;
  std::vector<std::string> gone;
};

std::vector<std::string> strings(const std::optional<json::Node>& node) {
  std::vector<std::string> list;
  if (node)
    for (const json::Node& item : node->array()) list.push_back(item.string());
  return list;
}

std::vector<std::pair<std::string, std::string>> pairs(const json::Node& node) {
  std::vector<std::pair<std::string, std::string>> list;
  for (const json::Node& item : node.array())
    list.emplace_back(item.array().at(0).string(), item.array().at(1).string());
  return list;
}

Case read_case(const std::string& name) {
  const json::Value document = json::parse_file(folder + "/" + name + "/case.json");
  json::ObjectReader object(json::Node(document, name));
  object.expect_format();
  Case one;
  one.name = name;
  EXPECT_FALSE(object.required("rows").array().empty());
  EXPECT_EQ(object.required("command").string(), "doctor");
  for (const std::string& file : strings(object.required("inputs")))
    one.inputs.push_back({read_file(folder + "/" + name + "/" + file), file});
  for (const json::Node& node : object.required("find").array()) {
    json::ObjectReader item(node);
    Expected expected{item.required("rule").string(), {}, strings(item.optional("says"))};
    if (const auto severity = item.optional("severity")) expected.severity = severity->string();
    item.finish();
    one.find.push_back(expected);
  }
  one.absent = strings(object.optional("absent"));
  one.says_remedy = strings(object.optional("says_remedy"));
  one.same = pairs(object.required("same"));
  one.cure = pairs(object.required("cure"));
  one.gone = strings(object.required("gone"));
  object.finish();
  return one;
}

std::vector<NamedText> replaced(std::vector<NamedText> inputs,
                                const std::vector<std::pair<std::string, std::string>>& changes) {
  for (const auto& [from, to] : changes) {
    std::size_t count = 0;
    for (NamedText& input : inputs)
      for (auto at = input.text.find(from); at != std::string::npos;
           at = input.text.find(from, at + to.size())) {
        input.text.replace(at, from.size(), to);
        ++count;
      }
    EXPECT_GT(count, 0U) << "\"" << from << "\" is not in the inputs";
  }
  return inputs;
}

std::set<std::string> answer(const doctor::Report& report) {
  std::set<std::string> rules;
  for (const doctor::Check& check : report.checks)
    rules.insert(
        fmt::format("{} {} {}", check.rule, to_string(check.state), to_string(check.severity)));
  return rules;
}

const doctor::Check* find(const doctor::Report& report, const std::string& rule) {
  for (const doctor::Check& check : report.checks)
    if (check.rule == rule) return &check;
  return nullptr;
}

std::vector<std::string> case_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class Cases : public testing::TestWithParam<std::string> {};

TEST_P(Cases, GiveTheRightAnswer) {
  const Case one = read_case(GetParam());
  const doctor::Report report = doctor::examine(one.inputs, models());
  const std::string all = fmt::format("{}", fmt::join(answer(report), "\n"));
  for (const Expected& expected : one.find) {
    const doctor::Check* check = find(report, expected.rule);
    ASSERT_NE(check, nullptr) << expected.rule << " is missing; there is:\n" << all;
    if (!expected.severity.empty()) {
      EXPECT_EQ(to_string(check->severity), expected.severity) << expected.rule;
    }
    for (const std::string& words : expected.says)
      EXPECT_NE(check->evidence.find(words), std::string::npos)
          << words << " in: " << check->evidence;
  }
  for (const std::string& rule : one.absent) EXPECT_EQ(find(report, rule), nullptr) << rule;
  for (const std::string& words : one.says_remedy)
    EXPECT_NE(find(report, one.find.at(0).rule)->remedy.find(words), std::string::npos) << words;
}

TEST_P(Cases, GiveTheSameWithNamesOrderAndAnIrrelevantFieldChanged) {
  const Case one = read_case(GetParam());
  const std::set<std::string> before = answer(doctor::examine(one.inputs, models()));
  ASSERT_FALSE(one.same.empty());
  std::vector<NamedText> changed = replaced(one.inputs, one.same);
  EXPECT_EQ(answer(doctor::examine(changed, models())), before);
  std::reverse(changed.begin(), changed.end());
  EXPECT_EQ(answer(doctor::examine(changed, models())), before) << "in the other order";
}

TEST_P(Cases, LoseTheFindingWithTheCause) {
  const Case one = read_case(GetParam());
  ASSERT_FALSE(one.gone.empty());
  const doctor::Report report = doctor::examine(replaced(one.inputs, one.cure), models());
  for (const std::string& rule : one.gone) {
    ASSERT_NE(find(doctor::examine(one.inputs, models()), rule), nullptr) << rule;
    EXPECT_EQ(find(report, rule), nullptr) << rule << " is still there";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Folders, Cases, testing::ValuesIn(case_names()), [](const auto& folder_of) {
      std::string name = folder_of.param;
      std::replace_if(
          name.begin(), name.end(),
          [](char c) { return std::isalnum(static_cast<unsigned char>(c)) == 0; }, '_');
      return name;
    });

}  // namespace
}  // namespace gdr
