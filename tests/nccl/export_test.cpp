#include <gtest/gtest.h>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/common/xml_tree.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/nccl/xml/write.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/nccl_corpus.hpp"
#include "tests/support/shared.hpp"

namespace gdr {
namespace {

Topology import_text(const std::string& text) {
  return import_nccl_xml(std::vector<NamedText>{{text, "machine.xml"}});
}

TEST(NcclExport, GivesEveryPublishedFileBack) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << test::no_shared_dir;
  const ModelLibrary models(data_folder(GDR_PROJECT_DIR) + "/models");
  int files = 0;
  for (const std::string folder : {"/corpus/nccl-xml", "/nccl-expected/inputs"}) {
    for (const std::string& file : test::xml_files(*shared + folder)) {
      SCOPED_TRACE(file);
      const std::string text = read_file(file);
      if (text.find("<graphs") != std::string::npos) continue;
      const Topology topology = import_nccl_xml(std::vector<NamedText>{{text, file}}, &models);
      // Through the JSON form, like a user's file.
      const Topology read = read_topology(to_json(topology), file, ".");
      const std::string exported = export_nccl_xml(read, 0, &models);
      EXPECT_EQ(xml::parse(exported, file), xml::parse(text, file));
      EXPECT_EQ(import_nccl_xml(std::vector<NamedText>{{exported, file}}, &models), topology);
      ++files;
    }
  }
  EXPECT_EQ(files, 52);
}

TEST(NcclExport, KeepsElementsWhereTheyStood) {
  const std::string text =
      R"(<system version="1" name="lab"><note a="&quot;1&quot;"/>
           <cpu numaid="3" arch="x86_64"><pci busid="0000:01:00.0" class="0x060400">
             <pcilink target="0000:02:00.0"/><pci busid="0000:03:00.0" class="0x030200">
               <gpu dev="0"><nvlink target="a" count="1" tclass="0x068000"><odd><deep x="1"/></odd></nvlink><mark/></gpu><tail/></pci>
             <pcilink target="0000:04:00.0"/><pci busid="0000:05:00.0" class="0x020000"><net name="stray"/><nic><net name="eth0"/><more/></nic></pci>
           </pci><nic><net name="eth1"/><pci busid="0000:06:00.0"/></nic></cpu><last/></system>)";
  EXPECT_EQ(xml::parse(export_nccl_xml(import_text(text), 0), "b"), xml::parse(text, "a"));
}

TEST(NcclExport, ShowsWhatWasChanged) {
  const std::string text =
      R"(<system version="1"><cpu numaid="0" arch="x86_64"><pci busid="0000:02:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
         <nic><net name="mlx5_0" dev="0" speed="200000" port="1" gdr="1"/></nic></pci></cpu></system>)";
  Topology topology = import_text(text);
  topology = read_topology(to_json(topology), "machine.json", ".",
                           {{"h0/nic0.link", "gen3x8"},
                            {"h0/nic0.port_rate", "100Gb/s"},
                            {"h0/nic0.gdr", "false"},
                            {"h0/nic0.ports", "2"}});
  const std::string exported = export_nccl_xml(topology, 0);
  EXPECT_NE(exported.find(R"(link_speed="8.0 GT/s PCIe" link_width="8")"), std::string::npos)
      << exported;
  EXPECT_NE(exported.find(R"(speed="100000" port="1" gdr="0")"), std::string::npos) << exported;
  EXPECT_EQ(import_text(exported).hosts[0].devices[0].ports, 2) << exported;
}

TEST(NcclExport, WritesATopologyOfItsOwn) {
  const auto document = json::parse(R"({"format": 1, "name": "own", "hosts": [{"name": "h0",
    "sockets": [{"name": "cpu0", "model": "ice-lake-sp"}], "numa_nodes": [{"name": "numa0", "socket": "cpu0"}, {"name": "numa1", "socket": "cpu0"}],
    "devices": [{"name": "hb0", "kind": "host-bridge", "under": "numa1"},
      {"name": "sw0", "kind": "switch", "under": "hb0", "link": "gen4x16"},
      {"name": "gpu0", "kind": "gpu", "model": "a100-sxm4-40gb", "under": "sw0", "link": "gen4x16"},
      {"name": "gpu1", "kind": "gpu", "model": "a100-sxm4-40gb", "under": "sw0", "link": "gen4x16"},
      {"name": "nic0", "kind": "nic", "model": "connectx-7", "under": "sw0", "link": "gen4x16", "ports": 2},
      {"name": "nvme0", "kind": "nvme", "under": "sw0"}],
    "nvlinks": [{"from": "gpu0", "to": "gpu1", "count": 4}, {"from": "gpu0", "count": 8}]}]})",
                                    "own.json");
  const ModelLibrary models(data_folder(GDR_PROJECT_DIR) + "/models");
  const Topology own = read_topology(document, "own.json", ".");
  const std::string text = export_nccl_xml(own, 0, &models);
  const Topology back = import_nccl_xml(std::vector<NamedText>{{text, "own.xml"}}, &models);
  const Host& host = back.hosts[0];
  ASSERT_EQ(host.numa_nodes.size(), 2U) << text;
  EXPECT_EQ(host.sockets[1].model, "ice-lake-sp");
  ASSERT_EQ(host.devices.size(), 4U) << "no host bridge, no drive\n" << text;
  EXPECT_EQ(host.devices[0].under, "numa1");
  EXPECT_EQ(host.devices[1].under, "sw0");
  EXPECT_EQ(host.devices[1].model, "a100-sxm4-40gb");
  EXPECT_EQ(host.devices[3].ports, 2);
  EXPECT_EQ(host.devices[3].model, "connectx-7");
  EXPECT_EQ(host.devices[3].port_rate, models.nic("connectx-7").port_rate.value);
  EXPECT_EQ(host.nvlinks, own.hosts[0].nvlinks);
  EXPECT_NE(text.find(R"(sm="80")"), std::string::npos);
}

}  // namespace
}  // namespace gdr
