#include "src/common/file.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "src/common/error.hpp"

namespace {

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
    return "no error";
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

class File : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "gdr-file-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(File, WholeContent) {
  const std::string path = folder_ + "/f";
  const std::string content("a\0b\n", 4);
  gdr::write_file(path, content);
  EXPECT_EQ(gdr::read_file(path), content);
  gdr::write_file(path, "");
  EXPECT_EQ(gdr::read_file(path), "");
  EXPECT_FALSE(std::filesystem::exists(path + ".part"));
}

TEST_F(File, ALinkStaysALink) {
  gdr::write_file(folder_ + "/real", "old");
  std::filesystem::create_symlink("real", folder_ + "/link");
  gdr::write_file(folder_ + "/link", "new");
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ + "/link"));
  EXPECT_EQ(gdr::read_file(folder_ + "/real"), "new");
}

TEST_F(File, ErrorsNameThePathAndTheReason) {
  const std::string none = folder_ + "/none";
  EXPECT_EQ(error_of([&] { (void)gdr::read_file(none); }),
            none + ": cannot open it: No such file or directory");
  EXPECT_EQ(error_of([&] { (void)gdr::read_file(folder_); }),
            folder_ + ": is a directory, a file is needed");
  EXPECT_EQ(error_of([&] { gdr::write_file(none + "/f", "x"); }),
            none + "/f: cannot write it: No such file or directory");
  EXPECT_EQ(error_of([&] { gdr::write_file(folder_, "x"); }),
            folder_ + ": cannot write it: Is a directory");
  EXPECT_EQ(error_of([&] { gdr::write_file("/dev/full", "x"); }),
            "/dev/full: cannot write it: No space left on device");
  std::filesystem::resize_file((gdr::write_file(none, "x"), none), std::uintmax_t{65} << 20U);
  EXPECT_EQ(error_of([&] { (void)gdr::read_file(none); }),
            none + ": larger than 64 MiB, the limit for all files");
}

}  // namespace
