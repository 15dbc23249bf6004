// gdr_guest_tests [OPTION...]      on both of two guests: tests of the transport between them.
//                                  Host 0 runs them, the other host is B.
// gdr_guest_tests faults SEED      prints the fabric's faults in that run of the campaign, for
//                                  gdr emulate in NAME --fault; anywhere.
// gdr_guest_tests campaign SEED    on both guests: that run.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/transport/guests/agent.hpp"
#include "tests/transport/guests/campaign.hpp"
#include "tests/transport/guests/resources.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {

std::string variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) throw InputError(name + " is not set: this runs in guests of gdr emulate");
  return value;
}

/// GDR_PEERS is "h1=192.168.0.2": of two hosts.
Agent agent_of_peer() {
  const std::string peers = variable("GDR_PEERS");
  const auto equals = peers.find('=');
  if (equals == std::string::npos || peers.find(' ') != std::string::npos)
    throw InputError("two hosts are wanted; GDR_PEERS is " + peers);
  return Agent(peers.substr(equals + 1),
               variable("GDR_PEER_" + peers.substr(0, equals) + "_NIC_0"));
}

/// Says how many objects of RDMA are left over when the tests have run.
class NothingIsLeft final : public testing::Environment {
 public:
  void SetUp() override {
    here_ = resources_here();
    there_ = resources_there();
    ASSERT_NE(here_.find("rxe0"), std::string::npos) << here_;
  }
  void TearDown() override {
    EXPECT_EQ(resources_here(), here_) << "on this host";
    EXPECT_EQ(resources_there(), there_) << "on the other host";
  }

 private:
  std::string here_;
  std::string there_;
};

int run(int argc, char** argv) {
  const std::string word = argc > 1 ? argv[1] : "";
  if (word == "faults" && argc == 3) return fmt::print("{}\n", faults_of(std::stoull(argv[2]))), 0;
  const bool first = variable("GDR_HOST_INDEX") == "0";
  if (word == "campaign" && argc == 3) {
    const std::uint64_t seed = std::stoull(argv[2]);
    if (!first) return serve_campaign(seed);
    Agent agent = agent_of_peer();
    guest_world = &agent;
    return run_campaign(seed);
  }
  if (!first) return serve_agent();
  Agent agent = agent_of_peer();
  guest_world = &agent;
  testing::InitGoogleTest(&argc, argv);
  testing::AddGlobalTestEnvironment(new NothingIsLeft);
  return RUN_ALL_TESTS();
}

}  // namespace
}  // namespace gdr::transport

int main(int argc, char** argv) {
  try {
    return gdr::transport::run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "gdr_guest_tests: {}\n", error.what());
    return 2;
  }
}
