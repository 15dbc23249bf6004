#include <gtest/gtest.h>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"
#include "src/import/machine.hpp"

namespace gdr {
namespace {

const ModelLibrary& models() {
  static const ModelLibrary library(std::string(GDR_PROJECT_DIR) + "/models");
  return library;
}

Topology import_text(const std::string& text) {
  return import_machine(std::vector<NamedText>{{text, "listing.txt"}}, &models());
}

const Device& device(const Topology& topology, const std::string& name) {
  return get(topology, find_device(topology, name));
}

std::string distance(const Topology& topology, const char* a, const char* b) {
  return smi_distance(Graph(topology), find_device(topology, a), find_device(topology, b));
}

constexpr const char* tree = R"(
-+-[0000:40]-+-00.0  Intel Corporation Device 09a2
 |           \-01.0-[41-45]----00.0-[42-45]--+-00.0-[43]----00.0  NVIDIA Corporation GA100 [A100 PCIe 80GB]
 |                                           +-01.0-[44]--+-00.0  Mellanox Technologies MT28908 Family [ConnectX-6]
 |                                           |            \-00.1  Mellanox Technologies MT28908 Family [ConnectX-6]
 |                                           \-02.0-[45]--
 \-[0000:00]-+-00.0  Intel Corporation Device 09a2
             +-1d.0-[01]----00.0  Samsung Electronics Co Ltd NVMe SSD Controller PM173X
             \-1f.0  Intel Corporation C621A Series Chipset LPC/eSPI Controller
)";

TEST(LspciTree, BridgesBecomeSwitchesAndHostBridges) {
  const Topology topology = import_text(tree);
  const Host& host = topology.hosts.at(0);
  ASSERT_EQ(host.devices.size(), 7U);
  EXPECT_EQ(device(topology, "gpu0").under, "sw0");
  EXPECT_EQ(device(topology, "gpu0").address, "0000:43:00.0");
  EXPECT_EQ(device(topology, "gpu0").model, "a100-pcie-80gb");
  EXPECT_EQ(device(topology, "sw0").address, "0000:41:00.0");
  EXPECT_EQ(device(topology, "sw0").under, "hb1");
  EXPECT_EQ(device(topology, "hb1").address, "0000:40:00.0");
  EXPECT_EQ(device(topology, "nic1").address, "0000:44:00.1");
  EXPECT_EQ(device(topology, "nvme0").under, "hb0");
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "PIX");
  EXPECT_EQ(distance(topology, "nic0", "nic1"), "PIX");
  EXPECT_EQ(distance(topology, "gpu0", "nvme0"), "NODE/SYS") << "the NUMA nodes are unknown";
}

TEST(LspciTree, LinesThatGrepTookAwayLeaveTheirChildrenWithoutParents) {
  const std::string grepped = R"(-+-[0000:ff]-+-00.0  Intel Corporation Device 344c
 |           \-02.0-[ca-cf]----00.0-[cb-cf]--+-00.0-[cc]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
 |                                           \-01.0-[cd]----00.0  NVIDIA Corporation Device 2330
 |           \-02.0-[b1]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
)";
  const Topology topology = import_text(grepped);
  EXPECT_EQ(topology.hosts.at(0).devices.size(), 4U);
  EXPECT_EQ(device(topology, "gpu0").model, "h100-sxm5");
  EXPECT_EQ(distance(topology, "gpu0", "nic1"), "PIX");
  EXPECT_EQ(device(topology, "nic0").address, "0000:b1:00.0");
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "unknown")
      << "bus ff cannot lead to ca: another root's line is missing";
}

TEST(LspciTree, ATailThatWasCutKeepsWhatIsThere) {
  const std::string text = tree;
  const std::string cut = text.substr(0, text.find("+-01.0-[44]") + 5);
  const Topology topology = import_text(cut);
  EXPECT_EQ(device(topology, "gpu0").under, "sw0");
  EXPECT_EQ(topology.hosts.at(0).devices.size(), 3U);
}

TEST(LspciTree, WithoutNamesAListGivesThem) {
  const std::string bare =
      "-[0000:00]-+-00.0\n           \\-01.0-[01]--+-00.0\n                        \\-00.1\n";
  try {
    import_text(bare);
    FAIL() << "a tree without names was imported";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("their names are missing"), std::string::npos)
        << error.what();
  }
  const Topology topology =
      import_text(bare +
                  "\n01:00.0 3D controller [0302]: NVIDIA Corporation Device [10de:2330] (rev a1)\n"
                  "01:00.1 Ethernet controller [0200]: Mellanox Technologies MT2910 [15b3:1021]\n");
  EXPECT_EQ(device(topology, "gpu0").model, "h100-sxm5");
  EXPECT_EQ(device(topology, "gpu0").under, "hb0");
  EXPECT_EQ(device(topology, "nic0").link_layer, LinkLayer::ethernet);
}

constexpr const char* details =
    R"(15:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0) (prog-if 00 [Normal decode])
	NUMA node: 1
	IOMMU group: 7
	Bus: primary=15, secondary=16, subordinate=18, sec-latency=0
	Capabilities: [68] Express (v2) Upstream Port, MSI 00
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 32GT/s, Width x16
14:01.0 PCI bridge: Intel Corporation Device 352a
	Bus: primary=14, secondary=15, subordinate=18, sec-latency=0
	Capabilities: [40] Express (v2) Root Port (Slot+), MSI 00
		LnkCap:	Port #1, Speed 32GT/s, Width x16, ASPM not supported
	Capabilities: [110 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
16:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)
	Bus: primary=16, secondary=17, subordinate=17
	Capabilities: [68] Express (v2) Downstream Port (Slot-), MSI 00
		LnkCap:	Port #0, Speed 32GT/s, Width x8
		ACSCtl:	SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-
16:01.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)
	Bus: primary=16, secondary=18, subordinate=18
	Capabilities: [68] Express (v2) Downstream Port (Slot-), MSI 00
	Capabilities: <access denied>
17:00.0 3D controller: NVIDIA Corporation GH100[H100 SXM5 80GB] (rev a1)
	NUMA node: 1
	Region 0: Memory at 99000000 (64-bit, prefetchable) [size=16M]
	Region 2: Memory at 3a000000000 (64-bit, prefetchable) [size=128G]
	Capabilities: [60] Express (v2) Endpoint, MSI 00
		DevCap:	MaxPayload 256 bytes, PhantFunc 0, Latency L0s <64ns
		DevCtl:	CorrErr- NonFatalErr+ FatalErr+ UnsupReq-
			RlxdOrd+ ExtTag+ PhantFunc- AuxPwr- NoSnoop+
			MaxPayload 256 bytes, MaxReadReq 4096 bytes
		LnkCap:	Port #0, Speed 32GT/s, Width x16, ASPM not supported
		LnkSta:	Speed 32GT/s, Width x8 (downgraded)
18:00.0 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]
	NUMA node: 1
		ATSCtl:	Enable+, Smallest Translation Unit: 00
		LnkSta:	Speed 16GT/s (downgraded), Width x16
)";

TEST(LspciDetails, ReadsTheTreeByBusNumbersAndEveryField) {
  const Topology topology = import_text(details);
  const Device& gpu = device(topology, "gpu0");
  EXPECT_EQ(gpu.under, "sw0");
  EXPECT_EQ(gpu.acs, Acs{}) << "the bits of the downstream port above";
  EXPECT_EQ(gpu.link, (PcieLink{5, 8}));
  EXPECT_EQ(gpu.link_capability, std::nullopt)
      << "its port has eight lanes, so eight are all that fit";
  EXPECT_EQ(gpu.max_read_request, parse_bytes("4KiB"));
  EXPECT_EQ(gpu.relaxed_ordering, true);
  EXPECT_EQ(gpu.bar_size, parse_bytes("128GiB"));
  const Device& nic = device(topology, "nic0");
  EXPECT_EQ(nic.acs, std::nullopt) << "access denied is not zero";
  EXPECT_EQ(nic.ats, true);
  EXPECT_EQ(nic.link, (PcieLink{4, 16})) << "NICs do not slow down when idle";
  EXPECT_EQ(nic.link_layer, LinkLayer::infiniband);
  const Device& sw = device(topology, "sw0");
  EXPECT_EQ(sw.model, "pex89144");
  EXPECT_TRUE(sw.acs && sw.acs->redirects()) << "of the root port";
  EXPECT_EQ(sw.under, "hb0");
  EXPECT_EQ(device(topology, "hb0").under, "numa1");
}

TEST(LspciDetails, AGpuThatRunsSlowerThanItCanMayBeIdle) {
  const std::string gpu =
      "17:00.0 3D controller: NVIDIA Corporation GH100[H100 SXM5 80GB] (rev a1)\n"
      "\t\tLnkCap: Port #0, Speed 32GT/s, Width x16\n\t\tLnkSta: Speed 5GT/s (downgraded), Width "
      "x16\n";
  const Topology slow = import_text(gpu);
  EXPECT_EQ(device(slow, "gpu0").link, std::nullopt);
  ASSERT_EQ(slow.hosts.at(0).remarks.size(), 1U);
  EXPECT_EQ(slow.hosts.at(0).remarks[0].rule, "link-speed-snapshot");
  EXPECT_NE(slow.hosts.at(0).remarks[0].message.find("8.0 GB/s"), std::string::npos)
      << slow.hosts.at(0).remarks[0].message;
  std::string full = gpu;
  full.replace(full.find("5GT/s (downgraded)"), 18, "32GT/s");
  EXPECT_TRUE(import_text(full).hosts.at(0).remarks.empty());
  EXPECT_EQ(device(import_text(full), "gpu0").link, (PcieLink{5, 16}));
}

TEST(LspciDetails, PathsOfPPShowTheBridges) {
  const Topology topology = import_text(
      "00:01.1/01:00.0/02:00.0/03:00.0 Processing accelerators: Advanced Micro Devices, Inc. "
      "[AMD/ATI] Aqua Vanjaram [Instinct MI300X]\n"
      "00:01.1/01:00.0/02:01.0/04:00.0 Ethernet controller: Mellanox Technologies MT2910 Family "
      "[ConnectX-7]\n");
  EXPECT_EQ(device(topology, "gpu0").model, "mi300x");
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "PIX");
}

TEST(LspciDetails, ReadsAConfigurationSpace) {
  std::string dump = "01:00.0 3D controller: NVIDIA Corporation Device 2330\n";
  std::vector<int> bytes(256, 0);
  const auto set = [&](std::size_t at, std::initializer_list<int> values) {
    std::copy(values.begin(), values.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  };
  set(0x00, {0xde, 0x10, 0x35, 0x23, 0x06, 0x04, 0x10, 0x00, 0xa1, 0x00, 0x02, 0x03});
  set(0x34, {0x60});
  set(0x60,
      {0x10, 0x00, 0x02, 0x00, 0, 0, 0, 0, 0x50, 0x50, 0, 0, 0x05, 0x01, 0, 0, 0, 0, 0x04, 0x01});
  for (int row = 0; row < 16; ++row) {
    char head[8];
    std::snprintf(head, sizeof head, "%02x:", row * 16);
    dump += head;
    for (int i = 0; i < 16; ++i) {
      std::snprintf(head, sizeof head, " %02x", bytes[static_cast<std::size_t>(row * 16 + i)]);
      dump += head;
    }
    dump += "\n";
  }
  const Topology topology = import_text(dump);
  EXPECT_EQ(device(topology, "gpu0").pci_id, "10de:2335");
  EXPECT_EQ(device(topology, "gpu0").max_payload, parse_bytes("512B"));
  EXPECT_EQ(device(topology, "gpu0").max_read_request, parse_bytes("4KiB"));
  EXPECT_EQ(device(topology, "gpu0").relaxed_ordering, true);
  EXPECT_EQ(device(topology, "gpu0").link_capability, (PcieLink{5, 16}));
}

TEST(LspciDetails, InAVirtualMachineBridgesAreMadeUp) {
  const Topology topology =
      import_text(R"(-[0000:00]-+-00.0  Intel Corporation 82G33/G31/P35/P31 Express DRAM Controller
           +-01.0  Red Hat, Inc. Virtio console
           \-04.0-[01-03]----00.0-[02-03]--+-00.0-[02]----00.0  NVIDIA Corporation Device 2330
                                           \-01.0-[03]----00.0  Mellanox Technologies MT2910 Family [ConnectX-7]
)");
  EXPECT_EQ(topology.hosts.at(0).virtual_machine, true);
  EXPECT_EQ(device(topology, "sw0").model, "virtual-bridge");
}

/// Found by fuzzing: an imported topology must load.
TEST(LspciDetails, ABarThatNoGpuHasIsPassedOver) {
  const auto size = [](const std::string& text) {
    return device(import_text("01:00.0 3D controller: NVIDIA Corporation Device 2330\n\tRegion 2: "
                              "Memory at 3a0 (64-bit, prefetchable) [size=" +
                              text + "]\n"),
                  "gpu0")
        .bar_size;
  };
  EXPECT_EQ(size("4T"), parse_bytes("4TiB"));
  EXPECT_EQ(size("8T"), std::nullopt);
  EXPECT_EQ(size("96G"), std::nullopt) << "not a power of two";
}

TEST(LspciDetails, NamesAndPlaceOfEscapesDoNotMatter) {
  const Topology topology = import_text(
      "$ sudo lspci -vvv\r\n\x1b[1m01:00.0\x1b[0m 3D controller: NVIDIA Corporation Device "
      "2330\r\n");
  EXPECT_EQ(device(topology, "gpu0").model, "h100-sxm5");
}

}  // namespace
}  // namespace gdr
