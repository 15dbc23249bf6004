#include <gtest/gtest.h>

#include "src/study/servers.hpp"
#include "tests/support/simulation.hpp"

namespace gdr::sim {
namespace {

study::Column column(const std::vector<std::string>& settings = {}) {
  const Lab lab(two_switch_host(), settings);
  return study::column_of(simulator(), lab.topology, models());
}

TEST(Compare, TwoGpusOfASwitchShareItsNic) {
  const auto one = column();
  EXPECT_EQ(one.gpus, 4U);
  EXPECT_EQ(one.nics, 2U);
  EXPECT_EQ(one.pairs.works + one.pairs.slow + one.pairs.blocked + one.pairs.unknown, 8U);
  ASSERT_TRUE(one.alone && one.together && one.least);
  // Two GPUs that share a NIC get half of it each when all send at once.
  expect_close("oversubscription", 2.0, *one.oversubscription, 0.05);
  expect_close("together [GB/s]", one.alone->gigabytes_per_second() / 2,
               one.together->gigabytes_per_second(), 0.05);
  EXPECT_LE(one.least->bytes_per_second, one.together->bytes_per_second * 1.0001);
  EXPECT_NE(one.worst.find(" with nic"), std::string::npos);
}

TEST(Compare, HostMemoryIsLoadedOnlyByStaging) {
  const auto direct = column({"iommu=off"});
  EXPECT_EQ(direct.direct, 4U);
  EXPECT_EQ(direct.host_memory->bytes_per_second, 0);
  const auto staged = column({"iommu=translate", "maps_peer_memory=false"});
  EXPECT_EQ(staged.direct, 0U);
  EXPECT_EQ(staged.pairs.blocked, 8U);
  EXPECT_GT(staged.host_memory->gigabytes_per_second(), 10);
  EXPECT_GT(staged.latency->seconds, direct.latency->seconds);
}

TEST(Compare, WithoutNicsThereIsANoteInPlaceOfFigures) {
  Lab lab(two_switch_host(), {});
  std::erase_if(lab.topology.hosts[0].devices,
                [](const Device& device) { return device.kind == DeviceKind::nic; });
  const auto none = study::column_of(simulator(), lab.topology, models());
  EXPECT_EQ(none.note, "no NIC");
  EXPECT_FALSE(none.together.has_value());
}

}  // namespace
}  // namespace gdr::sim
