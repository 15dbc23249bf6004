#include "src/study/equal_hosts.hpp"

#include <gtest/gtest.h>

#include "tests/support/simulation.hpp"

namespace gdr::study {
namespace {

/// The fabric between the two hosts where the file has none, by the NICs' model and link layer.
std::string fabric_of(const std::string& nic_model, std::optional<LinkLayer> link_layer) {
  Topology one = load_topology(sim::project_file("topologies/servers/dgx-a100.json"));
  for (Device& device : one.hosts.front().devices)
    if (device.kind == DeviceKind::nic) {
      device.model = nic_model;
      device.link_layer = link_layer;
    }
  return with_equal_host(one, sim::models()).fabric->model;
}

TEST(EqualHosts, TheFabricIsWhatTheNicsSpeak) {
  EXPECT_EQ(fabric_of("connectx-6-hdr", std::nullopt), "infiniband") << "the model can do both";
  EXPECT_EQ(fabric_of("connectx-6-hdr", LinkLayer::ethernet), "roce-v2");
  EXPECT_EQ(fabric_of("connectx-6-hdr", LinkLayer::infiniband), "infiniband");
  EXPECT_EQ(fabric_of("bluefield-3", LinkLayer::ethernet), "roce-v2");
}

TEST(EqualHosts, HostsAreEqualButForTheirNames) {
  Topology one = load_topology(sim::project_file("topologies/servers/dgx-a100.json"));
  one.hosts.front().name = "h1";
  const Topology two = with_equal_host(one, sim::models());
  ASSERT_EQ(two.hosts.size(), 2U);
  EXPECT_EQ(two.hosts[0].name, "h1");
  EXPECT_EQ(two.hosts[1].name, "h2");
  EXPECT_EQ(two.hosts[0].devices, two.hosts[1].devices);
  Topology joined = one;
  joined.fabric = Fabric{"roce-v2", {}, {}};
  EXPECT_EQ(with_equal_host(joined, sim::models()).fabric->model, "roce-v2");
}

}  // namespace
}  // namespace gdr::study
