#include <gtest/gtest.h>

#include <sstream>

#include "src/report/show_dot.hpp"
#include "src/report/show_text.hpp"
#include "src/topology/topology_json.hpp"

namespace {

gdr::Topology small() {
  return gdr::load_topology(std::string(GDR_PROJECT_DIR) + "/tests/data/small.json");
}

TEST(Show, ATree) {
  EXPECT_EQ(gdr::report::show_text(small()),
            "small\n"
            "  one GPU and one NIC below a switch\n"
            "\n"
            "h0\n"
            "  cpu0\n"
            "    numa0\n"
            "      hb0\n"
            "        sw0     gen4x16  ACS none\n"
            "          gpu0  gen4x16  ACS none\n"
            "          nic0  gen4x16  ACS none\n");
}

TEST(Show, EqualHostsAreShownOnce) {
  gdr::Topology topology = small();
  for (const char* name : {"h1", "h2"}) {
    topology.hosts.push_back(topology.hosts[0]);
    topology.hosts.back().name = name;
  }
  topology.hosts[1].software.kernel = "6.1";
  topology.fabric = gdr::Fabric{"infiniband", gdr::Bytes{4096}, 0};
  const std::string text = gdr::report::show_text(topology);
  EXPECT_NE(text.find("\nh0, h2: the same\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nh1\n  kernel 6.1\n"), std::string::npos) << text;
  EXPECT_NE(text.find("\nfabric: infiniband, MTU 4KiB, a cable between hosts\n"), std::string::npos)
      << text;
  for (int i = 3; i < 64; ++i) {
    topology.hosts.push_back(topology.hosts[0]);
    topology.hosts.back().name = "h" + std::to_string(i);
  }
  EXPECT_EQ(gdr::report::host_names(topology, gdr::report::equal_hosts(topology)[0]),
            "h0, h2, ..., h63 (63 hosts)");
}

/// Sixteen fully linked GPUs with long names and everything set: no line is wider than a terminal.
TEST(Show, FitsEightyColumns) {
  gdr::Topology topology = small();
  gdr::Host& host = topology.hosts[0];
  topology.description = std::string(200, 'w') +
                         " a long word stays whole, but words are not longer than a line " +
                         std::string(60, 'y');
  for (int i = 1; i < 16; ++i) {
    gdr::Device gpu = host.devices[2];
    gpu.name = "gpu" + std::to_string(i);
    gpu.model = "a-model-with-a-long-name";
    gpu.address = "00000000:3b:00.0";
    gpu.acs = gdr::Acs{0x7f};
    gpu.link_capability = gdr::PcieLink{5, 16};
    gpu.max_payload = gdr::Bytes{256};
    gpu.max_read_request = gdr::Bytes{512};
    gpu.bar_size = gdr::Bytes{std::uint64_t{64} << 30U};
    host.devices.push_back(gpu);
    for (int j = 0; j < i; ++j)
      host.nvlinks.push_back({gpu.name, "gpu" + std::to_string(j), 2, "", {}});
  }
  std::istringstream lines(gdr::report::show_text(topology));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(line.size() <= 80U || line.find(std::string(200, 'w')) != std::string::npos)
        << line;
}

TEST(Show, NvlinkIsCountedFromBothEnds) {
  gdr::Topology topology = small();
  gdr::Host& host = topology.hosts[0];
  host.devices.push_back(host.devices[2]);
  host.devices.back().name = "gpu1";
  host.nvlinks = {{"gpu0", "gpu1", 3, "", {}}, {"gpu0", "", 1, "", {}}};
  EXPECT_EQ(gdr::report::nvlink_lines(host),
            (std::vector<std::string>{"gpu0: 3 x gpu1, 1 x an NVSwitch", "gpu1: 3 x gpu0"}));
}

TEST(Show, DotQuotesWhatItPrints) {
  gdr::Topology topology = small();
  topology.name = "a\"b\\c";
  EXPECT_NE(gdr::report::show_dot(topology).find("graph \"a\\\"b\\\\c\" {"), std::string::npos);
}

}  // namespace
