#include <gtest/gtest.h>

#include <filesystem>

#include "tests/support/verdict_support.hpp"

namespace {

class VerdictServers : public testing::TestWithParam<std::string> {};

TEST_P(VerdictServers, EveryGpuHasANicThatWorksAndNothingIsAnError) {
  const std::string file = GDR_PROJECT_DIR "/topologies/servers/" + GetParam() + ".json";
  if (!std::filesystem::exists(file)) GTEST_SKIP() << "there is no " << file;
  const gdr::Topology topology = gdr::load_topology(file);
  const gdr::Verdict verdict = gdr::judge(gdr::Graph(topology), verdict_test::models());
  EXPECT_EQ(verdict.best.size(), 8U);
  for (const gdr::BestPair& best : verdict.best)
    EXPECT_EQ(verdict.pairs[best.pair].answer, gdr::PairAnswer::works)
        << best.gpu << " with " << verdict.pairs[best.pair].to;
  for (const gdr::Finding& finding : verdict.findings)
    EXPECT_NE(finding.severity, gdr::Severity::error) << finding.message;
}

INSTANTIATE_TEST_SUITE_P(Machines, VerdictServers, testing::Values("dgx-a100", "dgx-h100", "p4d"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
