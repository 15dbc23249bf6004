#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "src/common/file.hpp"
#include "src/verdict/verdict_json.hpp"
#include "tests/support/verdict_support.hpp"

// Each folder of tests/golden/check is a case: topology.json, and the output of `gdr check --format
// json` in expected.json. With GDR_UPDATE_GOLDEN set, the test writes expected.json instead; look
// at the difference before you commit it.

namespace {

const std::filesystem::path folder = GDR_PROJECT_DIR "/tests/golden/check";

std::vector<std::string> cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

class GoldenCheck : public testing::TestWithParam<std::string> {};

TEST_P(GoldenCheck, SaysWhatItSaid) {
  const gdr::Topology topology =
      gdr::load_topology((folder / GetParam() / "topology.json").string());
  const gdr::json::Value actual =
      to_json(gdr::judge(gdr::Graph(topology), verdict_test::models()), topology.name);
  const std::string expected = (folder / GetParam() / "expected.json").string();
  if (std::getenv("GDR_UPDATE_GOLDEN") != nullptr)
    gdr::write_file(expected, gdr::json::dump(actual));
  EXPECT_EQ(gdr::json::dump(gdr::json::parse_file(expected)), gdr::json::dump(actual));
}

INSTANTIATE_TEST_SUITE_P(Cases, GoldenCheck, testing::ValuesIn(cases()), [](const auto& test) {
  std::string name = test.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

}  // namespace
