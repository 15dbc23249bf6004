// Every published listing in the shared folder is imported, or refused for the right reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"
#include "src/import/machine.hpp"
#include "src/topology/topology_json.hpp"
#include "src/verdict/verdict.hpp"
#include "tests/support/shared.hpp"

namespace gdr {
namespace {

/// Files that do not describe a machine, by name, and part of the expected refusal.
const std::map<std::string, std::string> refused{
    {"nvidia-dgx-gb10.xml", "without PCI devices"},
    {"nvidia-dgx-gb10.tar.bz2", "no PCI device"},
    {"threadripper-2x5090-t.txt", "give lspci -tv"},
    {"grub.txt", "it has facts of the host but"},
    {"2pa-pcidomain32bits.tar.bz2",
     "no GPU, NIC or drive among them"},  // a guest whose NIC is virtio
    {"lscpu.txt", "it has lscpu but"},
    {"numactl.txt", "it has lscpu but"},
    {"measurements.txt", "gdr verify"},
    {"graph.xml", "a graph file"},
    {"ncv4-graph.xml", "a graph file"},
    {"index.json", "neither a topology"},
    {"README.md", "it does not describe a machine"}};

std::vector<std::string> corpus() {
  std::vector<std::string> files;
  const auto shared = test::shared_dir();
  if (!shared) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(*shared + "/corpus"))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

TEST(ImportCorpus, EveryFileIsImportedOrRefusedWithTheReason) {
  if (!test::shared_dir()) GTEST_SKIP() << test::no_shared_dir;
  const ModelLibrary models(std::string(GDR_PROJECT_DIR) + "/models");
  std::size_t imported = 0;
  std::size_t refusals = 0;
  for (const std::string& file : corpus()) {
    const auto expected = refused.find(std::filesystem::path(file).filename().string());
    try {
      const Topology topology = import_machine(std::vector<std::string>{file}, &models);
      EXPECT_EQ(read_topology(to_json(topology), file, ""), topology);
      (void)judge(Graph(topology), models);
      EXPECT_EQ(expected, refused.end()) << file << " was imported";
      ++imported;
    } catch (const InputError& error) {
      ASSERT_NE(expected, refused.end()) << error.what();
      EXPECT_NE(std::string(error.what()).find(expected->second), std::string::npos)
          << error.what();
      ++refusals;
    }
  }
  EXPECT_GE(imported, 89U);
  EXPECT_GE(refusals, 10U);
}

/// The published tables: each cell except NVLinks must be the distance of its pair.
TEST(ImportCorpus, AMatrixGivesItsOwnDistancesAndNoSwitches) {
  if (!test::shared_dir()) GTEST_SKIP() << test::no_shared_dir;
  std::size_t cells = 0;
  for (const std::string& file : corpus()) {
    if (file.find("/topo-m/") == std::string::npos || !file.ends_with(".txt")) continue;
    const Topology topology = import_machine(std::vector<std::string>{file});
    const observed::Matrix matrix = *read_machine({read_input(file)}).matrix;
    const Graph graph(topology);
    for (const Device& device : topology.hosts.front().devices)
      EXPECT_TRUE(device.kind == DeviceKind::gpu || device.kind == DeviceKind::nic)
          << file << ": " << device.name;
    for (const auto& [place, word] : matrix.cells) {
      const DeviceId a{0, place.first};
      const DeviceId b{0, place.second};
      EXPECT_EQ(smi_distance(graph, a, b), word == "SOC" ? "SYS" : word)
          << file << ": " << label(topology, a) << " " << label(topology, b);
      ++cells;
    }
  }
  EXPECT_GT(cells, 1500U);
}

/// All listings of one machine together: tree, details and table agree, and each adds facts.
TEST(ImportCorpus, OneMachineFromAllItsListings) {
  if (!test::shared_dir()) GTEST_SKIP() << test::no_shared_dir;
  const ModelLibrary models(std::string(GDR_PROJECT_DIR) + "/models");
  const std::string folder = *test::shared_dir() + "/corpus/hosts/puget-wrx90/";
  std::vector<std::string> files;
  for (const char* name : {"lspci-tv.txt", "lspci-vvv.txt", "nvidia-smi-topo-m.txt", "lscpu.txt",
                           "numactl.txt", "grub.txt", "acsctl.txt"})
    files.push_back(folder + name);
  const Topology all = import_machine(files, &models);
  const Host& host = all.hosts.at(0);
  for (const Remark& remark : host.remarks)
    EXPECT_TRUE(remark.rule == "link-speed-snapshot" || remark.rule == "acs-clear")
        << remark.rule << ": " << remark.message;
  EXPECT_EQ(host.sockets.at(0).model, "threadripper-pro-7000");
  EXPECT_EQ(host.software.iommu, IommuMode::off);
  EXPECT_TRUE(host.distances.empty()) << "the tree shows all of them";
  const auto device = [&](const std::string& name) { return get(all, find_device(all, name)); };
  EXPECT_EQ(device("gpu0").model, "rtx-6000-ada");
  EXPECT_EQ(device("gpu1").bar_size, parse_bytes("64GiB"));
  EXPECT_EQ(device("gpu0").link, std::nullopt) << "an idle GPU's speed says nothing";
  EXPECT_EQ(device("gpu0").link_capability, (PcieLink{4, 16}));
  EXPECT_EQ(device("nic2").rdma_device, "mlx5_0");
  EXPECT_EQ(device("nic2").link, (PcieLink{5, 16}));
  EXPECT_EQ(device("nic2").max_payload, parse_bytes("512B"));

  // The order of the inputs does not matter.
  std::reverse(files.begin(), files.end());
  Topology reversed = import_machine(files, &models);
  EXPECT_EQ(reversed.hosts.at(0).devices, host.devices);

  // All listings give the pairs the same distances.
  const auto distance = [](const Topology& topology, const char* a, const char* b) {
    return smi_distance(Graph(topology), find_device(topology, a), find_device(topology, b));
  };
  const Topology tree = import_machine({files.back()}, &models);
  const Topology table = import_machine({folder + "nvidia-smi-topo-m.txt"}, &models);
  EXPECT_EQ(distance(table, "gpu0", "gpu1"), "PHB");
  EXPECT_EQ(distance(tree, "gpu0", "gpu1"), "PHB");
  EXPECT_EQ(distance(all, "gpu0", "gpu1"), "PHB");
  EXPECT_EQ(distance(table, "gpu0", "nic0"), "NODE");
  EXPECT_EQ(distance(tree, "gpu0", "nic2"), "NODE/SYS") << "the tree does not show NUMA nodes";
  EXPECT_EQ(distance(all, "gpu0", "nic2"), "NODE");
  EXPECT_EQ(distance(all, "nic2", "nic3"), "PIX");
}

}  // namespace
}  // namespace gdr
