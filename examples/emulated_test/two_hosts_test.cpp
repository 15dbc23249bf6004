// CMakeLists.txt runs this on all hosts of a topology at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

TEST(TwoHosts, AHostKnowsItselfAndTheOther) {
  const bool first = variable("GDR_HOST_INDEX") == "0";
  EXPECT_EQ(variable("GDR_HOST"), first ? "h0" : "h1");
  EXPECT_NE(variable("GDR_NIC_0"), "");
  EXPECT_NE(variable(first ? "GDR_PEER_h1_NIC_0" : "GDR_PEER_h0_NIC_0"), "");
}

TEST(TwoHosts, HasItsNicAndGpu) {
  EXPECT_TRUE(std::filesystem::exists("/sys/class/infiniband/rxe0"));
  EXPECT_TRUE(std::filesystem::exists("/dev/gdr-gpu0"));
}

TEST(TwoHosts, WaitsForTheOther) { EXPECT_EQ(std::system("gdr-barrier both-are-here"), 0); }

}  // namespace
