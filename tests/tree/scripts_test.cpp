// Scripts can be started: once, a first line edited as a comment left guests without an init.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> scripts() {
  const fs::path root = GDR_PROJECT_DIR;
  std::vector<fs::path> found{root / "test", root / "quickstart", root / ".ci/run"};
  for (const char* name : {"init", "modprobe", "gdr-barrier"})
    found.push_back(root / "emu/guest" / name);
  for (const char* folder : {"scripts", "tests", "bench"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const bool starts =
          (fs::status(entry.path()).permissions() & fs::perms::owner_exec) != fs::perms::none;
      if (entry.is_regular_file() && starts) found.push_back(entry.path());
    }
  return found;
}

TEST(Scripts, BeginWithTheirInterpreter) {
  const auto all = scripts();
  EXPECT_GT(all.size(), 12U);
  for (const fs::path& path : all) {
    std::ifstream file(path);
    std::string line;
    ASSERT_TRUE(std::getline(file, line)) << path;
    EXPECT_TRUE(line.starts_with("#!/")) << path << ": " << line;
    EXPECT_EQ(line.find("  "), std::string::npos) << path << ": more than an interpreter";
  }
}

}  // namespace
