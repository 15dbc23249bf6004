#include <gtest/gtest.h>

#include <filesystem>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/nccl_corpus.hpp"
#include "tests/support/shared.hpp"

namespace gdr {
namespace {

Topology import_text(const std::string& text) {
  return import_nccl_xml(std::vector<NamedText>{{text, "machine.xml"}});
}

std::string refusal(const std::string& text) {
  try {
    import_text(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "imported";
}

std::string in_cpu(const std::string& inside) {
  return "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" "
         "familyid=\"175\" modelid=\"1\">" +
         inside + "</cpu></system>";
}

const Device& device(const Topology& topology, const std::string& name) {
  return get(topology, find_device(topology, name));
}

constexpr const char* server = R"(
<pci busid="0000:15:00.0" class="0x060400" vendor="0x1000" device="0xc030" link_speed="32.0 GT/s PCIe" link_width="16">
  <pci busid="0000:18:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="1" sm="90" rank="1" gdr="1"><nvlink target="0000:05:00.0" count="4" tclass="0x068000"/>
      <nvlink target="0000:06:00.0" count="5" tclass="0x068000"/></gpu>
  </pci> stray text <!-- and a comment -->
  <pci busid="0000:19:00.0" class="0x020700" vendor="0x15b3" device="0x1021" link_speed="32.0 GT/s PCIe"
       link_width="16">
    <nic><net name="mlx5_3" dev="0" speed="400000" port="1" latency="0" guid="0x1" maxconn="131072" gdr="1"/>
         <net name="mlx5_3" dev="1" speed="400000" port="2" latency="0" guid="0x1" maxconn="131072" gdr="1"/></nic>
  </pci>
</pci>
<pci busid="0000:16:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="90" gdr="0"/></pci>
<nic><net name="eth0" dev="7" speed="-1" port="0" gdr="0"/></nic>)";

TEST(NcclImport, TakesWhatTheFileSays) {
  const Topology topology = import_text(in_cpu(server));
  const Host& host = topology.hosts.at(0);
  ASSERT_EQ(host.devices.size(), 5U);
  EXPECT_EQ(host.numa_nodes.at(0).name, "numa0");
  EXPECT_EQ(host.numa_nodes.at(0).socket, "cpu0");
  EXPECT_FALSE(topology.fabric.has_value());

  const Device& gpu = device(topology, "gpu1");
  EXPECT_EQ(gpu.under, "sw0");
  EXPECT_EQ(gpu.address, "0000:18:00.0");
  EXPECT_EQ(gpu.pci_id, "10de:2330");
  EXPECT_EQ(gpu.link, (PcieLink{5, 16}));
  EXPECT_EQ(gpu.gdr, true);
  EXPECT_EQ(device(topology, "gpu0").under, "numa0");
  EXPECT_EQ(device(topology, "gpu0").link, std::nullopt) << "an empty speed is not a link";

  const Device& nic = device(topology, "nic0");
  EXPECT_EQ(nic.ports, 2);
  EXPECT_EQ(nic.port_rate, parse_bandwidth("400Gb/s"));
  EXPECT_EQ(nic.link_layer, LinkLayer::infiniband);
  EXPECT_EQ(nic.rdma_device, "mlx5_3");
  EXPECT_EQ(device(topology, "nic1").under, "numa0");
  EXPECT_EQ(device(topology, "nic1").address, "");
  EXPECT_EQ(device(topology, "nic1").port_rate, std::nullopt);
  EXPECT_EQ(device(topology, "nic1").rdma_device, "")
      << "port 0 is an interface of the socket transport";

  ASSERT_EQ(host.nvlinks.size(), 1U);
  EXPECT_EQ(host.nvlinks[0].from, "gpu1");
  EXPECT_EQ(host.nvlinks[0].to, "") << "the NVSwitch is not in the tree";
  EXPECT_EQ(host.nvlinks[0].count, 9);
}

TEST(NcclImport, DoesNotBelieveTheLinkOfAGpuInsideAProcessor) {
  const auto link = [](const std::string& id) {
    return import_text(
               in_cpu(
                   "<pci busid=\"000f:01:00.0\" class=\"0x030200\" vendor=\"0x10de\"\n device=\"" +
                   id +
                   "\" link_speed=\"2.5 GT/s\nPCIe\" link_width=\"1\"><gpu dev=\"0\" sm=\"121\" "
                   "gdr=\"0\"/></pci>"))
        .hosts.at(0)
        .devices.at(0)
        .link;
  };
  EXPECT_EQ(link("0x2e12"), std::nullopt);
  EXPECT_EQ(link("0x2330"), (PcieLink{1, 1})) << "line breaks inside tags and values are read";
}

TEST(NcclImport, TellsAcceleratorsFromDisplays) {
  const auto kind = [](const std::string& attributes) {
    return import_text(in_cpu("<pci busid=\"0000:01:00.0\" " + attributes + "/>"))
        .hosts.at(0)
        .devices.at(0)
        .kind;
  };
  EXPECT_EQ(kind("class=\"0x030200\""), DeviceKind::gpu);
  EXPECT_EQ(kind("class=\"0x030000\" vendor=\"0x10de\" device=\"0x2230\""), DeviceKind::gpu);
  EXPECT_EQ(kind("class=\"0x030000\" vendor=\"0x1a03\" device=\"0x2000\""), DeviceKind::other)
      << "the VGA of a BMC";
  EXPECT_EQ(kind("class=\"0x030000\" vendor=\"0x1002\" device=\"0x515e\""), DeviceKind::other)
      << "ATI ES1000, a BMC's VGA as well";
  EXPECT_EQ(kind("class=\"0x038000\" vendor=\"0x1002\" device=\"0x740c\""), DeviceKind::gpu);
  EXPECT_EQ(kind("class=\"0x120000\" vendor=\"0x1002\" device=\"0x74a1\""), DeviceKind::gpu);
  EXPECT_EQ(kind("class=\"0x020000\""), DeviceKind::nic);
  EXPECT_EQ(kind("class=\"0x010802\""), DeviceKind::nvme);
  EXPECT_EQ(kind(""), DeviceKind::other);
}

TEST(NcclImport, DoesNotBelieveVirtualBridges) {
  const Topology topology = import_text(in_cpu(
      R"(<pci busid="0000:a1:00.0" class="0x060400" vendor="0x104c" device="0x8232" link_speed="2.5 GT/s PCIe" link_width="1">
         <pci busid="0000:a3:00.0" class="0x030200" vendor="0x10de" device="0x2330" link_speed="32.0 GT/s PCIe" link_width="0"/></pci>)"));
  EXPECT_EQ(topology.hosts.at(0).virtual_machine, true);
  EXPECT_EQ(device(topology, "sw0").model, "virtual-bridge");
  EXPECT_EQ(device(topology, "sw0").link, std::nullopt);
  EXPECT_EQ(device(topology, "gpu0").link, std::nullopt);
}

TEST(NcclImport, CountsXgmiPairsOnceAndIgnoresLoops) {
  const Topology topology = import_text(in_cpu(
      R"(<pci busid="0000:01:00.0" class="0x038000"><gpu dev="0"><xgmi target="0000:02:00.0" count="2" tclass="0x038000"/></gpu></pci>
         <pci busid="0000:02:00.0" class="0x038000"><gpu dev="1"><xgmi target="0000:01:00.0" count="2" tclass="0x038000"/></gpu></pci>
         <pci busid="0000:03:00.0" class="0x030200"><gpu dev="2"><nvlink target="0000:03:00.0" count="12" tclass="0x030200"/>
           <c2c bw="45000" count="10"/></gpu></pci>)"));
  const auto& links = topology.hosts.at(0).nvlinks;
  ASSERT_EQ(links.size(), 2U);
  EXPECT_EQ(links[0], (NvLink{"gpu0", "gpu1", 2, "", {}}));
  EXPECT_EQ(links[1], (NvLink{"gpu2", "numa0", 10, "nvlink-c2c", {}}));
}

TEST(NcclImport, MakesHostsOfFilesAndOfHashes) {
  const std::string one = in_cpu(server);
  const Topology two = import_nccl_xml(std::vector<NamedText>{{one, "a.xml"}, {one, "b.xml"}});
  ASSERT_EQ(two.hosts.size(), 2U);
  EXPECT_EQ(two.hosts[1].name, "h1");
  EXPECT_EQ(two.fabric.value_or(Fabric{}).model, "infiniband");
  const Topology hashes = import_text(
      R"(<system version="1"><cpu numaid="0" host_hash="0x1"/><cpu numaid="0" host_hash="0x2"/><cpu numaid="1" host_hash="0x1"/></system>)");
  ASSERT_EQ(hashes.hosts.size(), 2U);
  EXPECT_EQ(hashes.hosts[0].numa_nodes.size(), 2U);
}

TEST(NcclImport, FindsModels) {
  const ModelLibrary models(data_folder(GDR_PROJECT_DIR) + "/models");
  const std::string text = in_cpu(
      R"(<pci busid="0000:01:00.0" class="0x030200" vendor="0x10DE" device="0x20B0"/><pci busid="0000:02:00.0" class="0x020000" vendor="0x15b3" device="0x1021"/>
         <pci busid="0000:03:00.0" class="0x038000"><gpu dev="1" gcn="908"/></pci><pci busid="0000:04:00.0" class="0x038000"><gpu dev="2" gcn="910"/></pci>)");
  const Topology topology = import_nccl_xml(std::vector<NamedText>{{text, "machine.xml"}}, &models);
  EXPECT_EQ(device(topology, "gpu2").model, "a100-sxm4-40gb") << "without <gpu dev> the last one";
  EXPECT_EQ(device(topology, "nic0").model, "connectx-7");
  EXPECT_EQ(device(topology, "gpu0").model, "mi100");
  EXPECT_EQ(device(topology, "gpu1").model, "") << "several boards have gfx90a";
}

TEST(NcclImport, TakesAByteOrderMark) {
  EXPECT_EQ(import_text("\xef\xbb\xbf" + in_cpu("")).hosts.size(), 1U);
}

TEST(NcclImport, SaysWhatIsWrong) {
  EXPECT_EQ(refusal("<graphs version=\"1\"/>"),
            "machine.xml: a graph file (NCCL_GRAPH_FILE: rings and trees), not a topology "
            "(NCCL_TOPO_FILE)");
  EXPECT_EQ(refusal("<topology/>"), "machine.xml: a topology of hwloc, not of NCCL");
  EXPECT_EQ(refusal("<system version=\"3\"/>"),
            "machine.xml: <system> has version \"3\", allowed: 1 (NCCL), 2 (RCCL)");
  EXPECT_EQ(refusal("<system version=\"1\"/>"), "machine.xml: <system> has no <cpu>");
  EXPECT_EQ(refusal("<system version=\"1\"><cpu/></system>"),
            "machine.xml: a <cpu> has no numaid, or one that is not a number from -1 to 4095");
  EXPECT_EQ(refusal("<system version=\"1\"><cpu numaid=\"0\"/><cpu numaid=\"0\"/></system>"),
            "machine.xml: numaid 0 appears twice in a host");
  EXPECT_EQ(refusal("<system version=\"1\">\n<cpu numaid=\"0\"/>\n</sys>"),
            "machine.xml:3: not an XML file: Start-end tags mismatch");
  EXPECT_EQ(refusal(""), "machine.xml:1: not an XML file: No document element found");
  EXPECT_EQ(refusal("<system version=\"1\"><cpu numaid=\"0\" numaid=\"1\"/></system>"),
            "machine.xml: <cpu> has the attribute numaid twice");
}

TEST(NcclImport, SurvivesHostileNesting) {
  std::string deep;
  for (int i = 0; i < 200'000; ++i) deep += "<pci>";
  EXPECT_NE(refusal("<system version=\"1\"><cpu numaid=\"0\">" + deep).find("not an XML file"),
            std::string::npos);
  for (int i = 0; i < 200'000; ++i) deep += "</pci>";
  EXPECT_EQ(refusal(in_cpu(deep)), "machine.xml: elements are nested deeper than 64");
  std::string wide;
  for (int i = 0; i < 100'000; ++i) wide += "<pci/>";
  EXPECT_EQ(refusal(in_cpu(wide)), "machine.xml: more than 100000 elements");
  wide.resize(90'000 * 6);
  EXPECT_EQ(refusal(in_cpu(wide)), "imported");
}

TEST(NcclImport, ReadsEveryPublishedFile) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << test::no_shared_dir;
  const ModelLibrary models(data_folder(GDR_PROJECT_DIR) + "/models");
  int imported = 0;
  int graphs = 0;
  for (const std::string& file : test::xml_files(*shared + "/corpus/nccl-xml")) {
    SCOPED_TRACE(file);
    try {
      const Topology topology = import_nccl_xml(std::vector<std::string>{file}, &models);
      ++imported;
      EXPECT_EQ(read_topology(to_json(topology), file, "."), topology)
          << "the JSON form returns the same topology";
    } catch (const InputError& error) {
      EXPECT_EQ(
          error.what(),
          file +
              ": a graph file (NCCL_GRAPH_FILE: rings and trees), not a topology (NCCL_TOPO_FILE)");
      ++graphs;
    }
  }
  EXPECT_EQ(imported, 43);
  EXPECT_EQ(graphs, 2);
}

}  // namespace
}  // namespace gdr
