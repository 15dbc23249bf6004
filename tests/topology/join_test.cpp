// Joining topologies to a cluster.
#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"

namespace gdr {
namespace {

const std::string project = GDR_PROJECT_DIR;
const std::string table = "\tGPU0\tNIC0\nGPU0\t X \tPXB\nNIC0\tPXB\t X \n";

Topology of_table() { return import_machine(std::vector<NamedText>{{table, "topo.txt"}}); }
NamedText as_file(const Topology& topology, const std::string& name) {
  return {json::dump(to_json(topology)), name};
}

std::vector<std::string> names(const Topology& topology) {
  std::vector<std::string> list;
  for (const Host& host : topology.hosts) list.push_back(host.name);
  return list;
}

std::string refusal(const std::vector<NamedText>& inputs) {
  try {
    (void)import_machine(inputs);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

using Names = std::vector<std::string>;

TEST(Join, OneMachineTwiceIsTwoHosts) {
  const Topology one = of_table();
  const Topology two =
      import_machine(std::vector<NamedText>{as_file(one, "one.json"), as_file(one, "one.json")});
  EXPECT_EQ(names(two), (Names{"h0", "h1"}));
  EXPECT_EQ(two.name, "one");
  ASSERT_TRUE(two.fabric);
  EXPECT_EQ(two.fabric->model, "infiniband");
  Host second = two.hosts[1];
  second.name = one.hosts[0].name;
  EXPECT_EQ(second, one.hosts[0]) << "nothing but the name changed";
  // The joined topology survives writing and reading.
  EXPECT_EQ(read_topology(to_json(two), "two.json", "").hosts, two.hosts);
}

TEST(Join, NetworkIsThatOfTheFilesOrOfTheNics) {
  Topology roce = load_topology(project + "/topologies/servers/dgx-a100.json");
  for (Device& device : roce.hosts[0].devices)
    if (device.kind == DeviceKind::nic) device.link_layer = LinkLayer::ethernet;
  roce.hosts[0].name = "alpha";
  EXPECT_EQ(
      import_machine(std::vector<NamedText>{as_file(roce, "a"), as_file(roce, "b")}).fabric->model,
      "roce-v2");
  Topology cluster = roce;
  cluster.fabric = Fabric{"roce-v2", Bytes{1024}, 2};
  Topology other = roce;
  other.hosts[0].name = "beta";
  const Topology joined =
      import_machine(std::vector<NamedText>{as_file(other, "other"), as_file(cluster, "cluster")});
  EXPECT_EQ(joined.fabric, cluster.fabric);
  EXPECT_EQ(names(joined), (Names{"beta", "alpha"})) << "unique names stay";
  other.fabric = Fabric{"infiniband", {}, {}};
  EXPECT_EQ(refusal({as_file(cluster, "a.json"), as_file(other, "b.json")}),
            "b.json: its fabric differs from that of a.json; make them equal, or leave one out");
}

TEST(Join, ServersAreFoundBesideTheirFile) {
  const std::string cluster = project + "/topologies/clusters/two-dgx-a100.json";
  const Topology joined = import_machine(
      std::vector<std::string>{cluster, project + "/topologies/servers/dgx-a100.json"});
  EXPECT_EQ(names(joined), (Names{"h0", "h1", "h2"}));
  EXPECT_EQ(joined.fabric, load_topology(cluster).fabric);
}

TEST(Join, TablesAreOneMachineAndAreSaidToBe) {
  const auto remarks = [](const std::vector<NamedText>& inputs) {
    Names rules;
    const Topology topology = import_machine(inputs);
    for (const Remark& remark : topology.hosts.front().remarks)
      if (remark.rule == "tables-are-one-machine") rules.push_back(remark.message);
    return rules;
  };
  EXPECT_EQ(remarks({{table, "a.txt"}}), Names{});
  EXPECT_EQ(remarks({{table, "a.txt"}, {"CPU(s): 8\nModel name: AMD EPYC 7742\n", "lscpu.txt"}}),
            Names{});
  EXPECT_EQ(remarks({{table, "a.txt"}, {table, "b.txt"}}),
            Names{"2 inputs have a table of nvidia-smi topo -m, but gdr takes all inputs for one "
                  "machine."});
  EXPECT_EQ(refusal({as_file(of_table(), "one.json"), {table, "a.txt"}}),
            "one.json: already a topology of gdr. To join topologies, import two or more of them "
            "and nothing else");
}

}  // namespace
}  // namespace gdr
