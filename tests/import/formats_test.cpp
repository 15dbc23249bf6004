// sysfs, dumps of rdma_topo, hwloc, facts of the host, and the recognition of formats.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/hardware/distance.hpp"
#include "src/import/host_facts.hpp"
#include "src/import/machine.hpp"
#include "src/import/rdma_topo.hpp"

namespace gdr {
namespace {

namespace fs = std::filesystem;

const ModelLibrary& models() {
  static const ModelLibrary library(std::string(GDR_PROJECT_DIR) + "/models");
  return library;
}

Topology import_text(const std::string& text) {
  return import_machine(std::vector<NamedText>{{text, "input"}}, &models());
}

std::string refusal(const std::string& text) {
  try {
    import_text(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "imported";
}

const Device& device(const Topology& topology, const std::string& name) {
  return get(topology, find_device(topology, name));
}

std::string distance(const Topology& topology, const char* a, const char* b) {
  return smi_distance(Graph(topology), find_device(topology, a), find_device(topology, b));
}

/// A copy of /sys in a temporary folder.
class Sysfs : public testing::Test {
 protected:
  Sysfs() { fs::remove_all(root_); }
  ~Sysfs() override { fs::remove_all(root_); }
  void file(const std::string& path, const std::string& content) {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << content << "\n";
  }
  void function(const std::string& path, const std::string& vendor, const std::string& id,
                const std::string& pci_class, int node) {
    const std::string address = path.substr(path.rfind('/') + 1);
    const std::string full = "sys/devices/" + path;
    file(full + "/vendor", "0x" + vendor);
    file(full + "/device", "0x" + id);
    file(full + "/class", "0x" + pci_class);
    file(full + "/numa_node", std::to_string(node));
    fs::create_directories(root_ / "sys/bus/pci/devices");
    fs::create_symlink("../../../devices/" + path, root_ / "sys/bus/pci/devices" / address);
  }
  fs::path root_ = fs::temp_directory_path() / ("gdr-sysfs-" + std::to_string(::getpid()));
};

TEST_F(Sysfs, AFolderGivesTreeLinksRdmaDevicesAndSoftware) {
  const std::string root_port = "pci0000:40/0000:40:01.0";
  const std::string up = root_port + "/0000:41:00.0";
  function(root_port, "8086", "352a", "060400", 1);
  function(up, "1000", "c030", "060400", 1);
  function(up + "/0000:42:00.0", "1000", "c030", "060400", 1);
  function(up + "/0000:42:01.0", "1000", "c030", "060400", 1);
  const std::string gpu = up + "/0000:42:00.0/0000:43:00.0";
  const std::string nic = up + "/0000:42:01.0/0000:44:00.0";
  function(gpu, "10de", "2330", "030200", 1);
  function(nic, "15b3", "1021", "020700", 1);
  for (const char* which : {"current", "max"}) {
    file("sys/devices/" + gpu + "/" + which + "_link_speed", "32.0 GT/s PCIe");
    file("sys/devices/" + gpu + "/" + which + "_link_width", "16");
  }
  file("sys/devices/" + gpu + "/resource",
       "0x0000000099000000 0x0000000099ffffff 0x0000000000040200\n0x0000000000000000 "
       "0x0000000000000000 0x0000000000000000\n"
       "0x000003a000000000 0x000003bfffffffff 0x000000000014220c");
  fs::create_symlink("../../../../../../kernel/iommu_groups/12",
                     root_ / ("sys/devices/" + gpu) / "iommu_group");
  const std::string rdma = "sys/devices/" + nic + "/infiniband/mlx5_4";
  file(rdma + "/ports/1/link_layer", "InfiniBand");
  file(rdma + "/ports/1/rate", "400 Gb/sec (4X NDR)");
  file(rdma + "/ports/1/state", "4: ACTIVE");
  fs::create_directories(root_ / "sys/class/infiniband");
  fs::create_symlink("../../devices/" + nic + "/infiniband/mlx5_4",
                     root_ / "sys/class/infiniband/mlx5_4");
  fs::create_symlink("../../../0000:44:00.0", root_ / rdma / "device");
  file("sys/devices/system/node/node0/cpulist", "0-3");
  file("sys/devices/system/node/node1/cpulist", "4-7");
  file("sys/devices/system/cpu/cpu0/topology/physical_package_id", "0");
  file("sys/devices/system/cpu/cpu4/topology/physical_package_id", "1");
  file("proc/cpuinfo",
       "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\nmodel name\t: "
       "Intel(R) Xeon(R)\nflags\t\t: fpu vme\n");
  file("proc/modules", "nvidia_peermem 16384 0 - Live 0x0");
  file("proc/version", "Linux version 6.8.0-45-generic (someone@somewhere)");
  file("proc/cmdline", "BOOT_IMAGE=/vmlinuz intel_iommu=on iommu=pt");

  const Topology topology = import_machine(std::vector<std::string>{root_.string()}, &models());
  EXPECT_EQ(device(topology, "gpu0").under, "sw0");
  EXPECT_EQ(device(topology, "gpu0").link, (PcieLink{5, 16}));
  EXPECT_EQ(device(topology, "gpu0").bar_size, parse_bytes("128GiB"));
  EXPECT_EQ(device(topology, "nic0").rdma_device, "mlx5_4");
  EXPECT_EQ(device(topology, "nic0").port_rate, parse_bandwidth("400Gb/s"));
  EXPECT_EQ(device(topology, "nic0").link_layer, LinkLayer::infiniband);
  EXPECT_EQ(distance(topology, "gpu0", "nic0"), "PIX");
  const Host& host = topology.hosts.at(0);
  EXPECT_EQ(host.sockets.size(), 2U);
  EXPECT_EQ(host.sockets.at(0).model, "sapphire-rapids");
  EXPECT_EQ(device(topology, "hb0").under, "numa1");
  EXPECT_EQ(host.software.kernel, "6.8.0-45-generic");
  EXPECT_EQ(host.software.iommu, IommuMode::passthrough);
  EXPECT_EQ(host.software.nvidia_peermem, true);
}

TEST(RdmaTopo, ADumpGivesTheTreeAndTheConfigurationSpace) {
  std::vector<std::uint8_t> config(4096, 0);
  const auto put = [&](std::size_t at, std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), config.begin() + static_cast<std::ptrdiff_t>(at));
  };
  put(0x00, {0x00, 0x10, 0x30, 0xc0, 0x06, 0x04, 0x10, 0x00, 0, 0, 0x04, 0x06, 0, 0, 0x01});
  put(0x18, {0x42, 0x43, 0x43});
  put(0x34, {0x60});
  put(0x60, {0x10, 0x00, 0x62, 0x00});
  put(0x100, {0x0d, 0x00, 0x01, 0x00, 0x5f, 0x00, 0x1d, 0x00});
  const std::string packed = observed::encode_base64(observed::deflate(config));
  const std::string path = "/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0/0000:42:00.0";
  const auto entry = [](const std::string& at, const std::string& ids, const std::string& more) {
    return R"({"realpath": ")" + at + R"(", "modalias": "pci:v0000)" + ids +
           "sv00000000sd00000000" + more + "}";
  };
  const std::string dump =
      "[" +
      entry("/sys/devices/pci0000:40/0000:40:01.0", "8086d0000352A",
            R"(bc06sc04i00", "numa_node": 0)") +
      "," +
      entry("/sys/devices/pci0000:40/0000:40:01.0/0000:41:00.0", "1000d0000C030",
            R"(bc06sc04i00")") +
      "," + entry(path, "1000d0000C030", R"(bc06sc04i00", "config": ")" + packed + "\"") + "," +
      entry(path + "/0000:43:00.0", "15B3d00001021",
            R"(bc02sc07i00", "iommu_group": "9", "subsystems": {"infiniband": ["mlx5_0"]})") +
      "]";
  const Topology topology = import_text(dump);
  const Device& nic = device(topology, "nic0");
  EXPECT_EQ(nic.model, "connectx-7");
  EXPECT_EQ(nic.rdma_device, "mlx5_0");
  EXPECT_EQ(nic.under, "sw0");
  ASSERT_TRUE(nic.acs.has_value());
  EXPECT_EQ(to_string(*nic.acs), "SV+RR+CR+UF");

  EXPECT_NE(refusal("[{\"realpath\": \"/x\"}]").find("at /0: an entry of rdma_topo has"),
            std::string::npos);
  std::string broken = dump;
  broken.replace(broken.find(packed), 8, "!!!!!!!!");
  EXPECT_NE(refusal(broken).find("at /2: not base64"), std::string::npos) << refusal(broken);
  broken.replace(broken.find("!!!!!!!!"), 8, "AAAAAAAA");
  EXPECT_NE(refusal(broken).find("not a zlib stream"), std::string::npos) << refusal(broken);
  const std::string bomb =
      observed::encode_base64(observed::deflate(std::vector<std::uint8_t>(100'000, 0)));
  std::string large = dump;
  large.replace(large.find(packed), packed.size(), bomb);
  EXPECT_NE(refusal(large).find("unpacks to more than 4096 bytes"), std::string::npos);
}

TEST(RdmaTopo, Base64GoesBothWays) {
  for (std::size_t size = 0; size < 6; ++size) {
    const std::vector<std::uint8_t> bytes(size, 0xa7);
    EXPECT_EQ(observed::decode_base64(observed::encode_base64(bytes), "here"), bytes) << size;
  }
  EXPECT_EQ(observed::encode_base64({'M', 'a'}), "TWE=");
}

constexpr const char* pci_of_hwloc = R"(
  <object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[40-44]">
   <object type="Bridge" bridge_type="1-1" depth="1" bridge_pci="0000:[41-44]" pci_busid="0000:40:01.0" pci_type="0604 [8086:352a] [0000:0000] 00">
    <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[42-44]" pci_busid="0000:41:00.0" pci_type="0604 [1000:c030] [0000:0000] 00">
     <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[43-43]" pci_busid="0000:42:00.0" pci_type="0604 [1000:c030] [0000:0000] 00">
      <object type="PCIDev" pci_busid="0000:43:00.0" pci_type="0302 [10de:2330] [10de:16c1] a1" pci_link_speed="63.0"/></object>
     <object type="Bridge" bridge_type="1-1" bridge_pci="0000:[44-44]" pci_busid="0000:42:01.0" pci_type="0604 [1000:c030] [0000:0000] 00">
      <object type="PCIDev" pci_busid="0000:44:00.0" pci_type="0207 [15b3:1021] [15b3:0000] 00">
       <object type="OSDev" name="ib0" osdev_type="2"/><object type="OSDev" name="mlx5_2" osdev_type="3"/></object></object>
   </object></object></object>)";

TEST(Hwloc, AllVersionsGiveTheSameTree) {
  const std::string one =
      "<topology><object type=\"Machine\" nodeset=\"0x00000003\"><object type=\"NUMANode\" "
      "os_index=\"1\" nodeset=\"0x00000002\">"
      "<object type=\"Socket\" os_index=\"1\" nodeset=\"0x00000002\"/>" +
      std::string(pci_of_hwloc) + "</object></object></topology>";
  const std::string two =
      "<?xml version=\"1.0\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology "
      "version=\"2.0\"><object type=\"Machine\" nodeset=\"0x3\">"
      "<object type=\"Package\" os_index=\"1\" nodeset=\"0x00000002\"><object type=\"NUMANode\" "
      "os_index=\"1\" nodeset=\"0x00000002\"/>"
      "<info name=\"CPUVendor\" value=\"GenuineIntel\"/><info name=\"CPUFamilyNumber\" "
      "value=\"6\"/><info name=\"CPUModelNumber\" value=\"143\"/>" +
      std::string(pci_of_hwloc) + "</object></object></topology>";
  std::string three = two;
  three.replace(three.find("2.0"), 3, "3.0");
  three.replace(three.find("name=\"mlx5_2\" osdev_type=\"3\""), 28,
                "name=\"mlx5_2\" osdev_type=\"48\"");
  for (const std::string& text : {one, two, three}) {
    const Topology topology = import_text(text);
    EXPECT_EQ(device(topology, "gpu0").model, "h100-sxm5");
    EXPECT_EQ(device(topology, "nic0").rdma_device, "mlx5_2");
    EXPECT_EQ(device(topology, "hb0").under, "numa1");
    EXPECT_EQ(distance(topology, "gpu0", "nic0"), "PIX");
    EXPECT_EQ(device(topology, "gpu0").link, std::nullopt) << "63 GB/s fits several links";
  }
  EXPECT_EQ(import_text(two).hosts.at(0).sockets.at(0).model, "sapphire-rapids");
}

TEST(HostFacts, KernelCommandLines) {
  using observed::iommu_of_command_line;
  EXPECT_EQ(iommu_of_command_line("BOOT_IMAGE=/vmlinuz quiet"), std::nullopt);
  EXPECT_EQ(iommu_of_command_line("intel_iommu=on"), IommuMode::translate);
  EXPECT_EQ(iommu_of_command_line("intel_iommu=on iommu=pt"), IommuMode::passthrough);
  EXPECT_EQ(iommu_of_command_line("iommu=pt amd_iommu=off"), IommuMode::off);
  EXPECT_EQ(iommu_of_command_line("intel_iommu=on,sm_on iommu.passthrough=1"),
            IommuMode::passthrough);
  EXPECT_EQ(iommu_of_command_line("GRUB_CMDLINE_LINUX_DEFAULT=\"amd_iommu=on\""),
            IommuMode::translate);
  EXPECT_EQ(iommu_of_command_line("xintel_iommu=on"), std::nullopt);
}

TEST(HostFacts, WhatIsPastedBesideAListingCounts) {
  const std::string listing = "01:00.0 3D controller: NVIDIA Corporation Device 2330\n";
  const Topology topology = import_text(
      listing +
      "\n$ uname -r\n5.15.0-91-generic\n$ lsmod | head\nModule                  Size  Used by\n"
      "nvidia              56000000  12 nvidia_uvm\n"
      "| NVIDIA-SMI 535.104.05   Driver Version: 535.104.05   CUDA Version: 12.2 |\n"
      "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  535.104.05\n"
      "NCCL version 2.18.6+cuda12.1\nexport NCCL_NET_GDR_LEVEL=PHB\n"
      "Vendor ID:   AuthenticAMD\nCPU family:  25\nModel:  17\nSocket(s):  2\nNUMA node(s):  2\n");
  const Software& software = topology.hosts.at(0).software;
  EXPECT_EQ(software.kernel, "5.15.0-91-generic");
  EXPECT_EQ(software.nvidia_peermem, false) << "lsmod did not list nvidia_peermem";
  EXPECT_EQ(software.open_kernel_modules, true);
  EXPECT_EQ(software.cuda, "12.2");
  EXPECT_EQ(software.nccl_version, "2.18.6");
  EXPECT_EQ(software.nccl_net_gdr_level, "PHB");
  EXPECT_EQ(topology.hosts.at(0).sockets.at(0).model, "epyc-genoa");
  EXPECT_EQ(import_text(listing + "\nNCCL version .1\nCUDA Version: ..\n").hosts.at(0).software,
            Software{})
      << "found by fuzzing: no versions";
  EXPECT_EQ(import_text(listing).hosts.at(0).software, Software{}) << "nothing is known";
}

TEST(Recognise, WhatIsNoMachineIsRefusedByWhatItIs) {
  EXPECT_EQ(refusal(""), "input: empty");
  EXPECT_NE(refusal("hello\n").find("it does not describe a machine"), std::string::npos);
  EXPECT_NE(refusal("{\"format\": 1}").find("neither a topology"), std::string::npos);
  EXPECT_NE(refusal("<graphs version=\"1\"/>").find("a graph file"), std::string::npos);
  EXPECT_NE(refusal("host:1:1 [0] NCCL INFO Channel 00\n").find("gdr nccl --log"),
            std::string::npos);
  EXPECT_NE(refusal("BZh91AY&SYgarbage").find("archive"), std::string::npos);
  EXPECT_NE(refusal("<topology><object type=\"Machine\"/></topology>").find("without PCI devices"),
            std::string::npos);
  std::string deep;
  for (int i = 0; i < 10'000; ++i) deep += "<object type=\"Group\">";
  EXPECT_NE(refusal("<topology>" + deep), "imported");
  EXPECT_NE(refusal(std::string(100'000, '[')), "imported");
  EXPECT_NE(refusal("[" + std::string(100'000, '[') + "{"), "imported");
}

TEST(Recognise, AFileOfAHundredMegabytesIsRefusedUnread) {
  const std::string path =
      (fs::temp_directory_path() / ("gdr-large-" + std::to_string(::getpid()))).string();
  std::ofstream(path).close();
  fs::resize_file(path, 100U << 20U);
  EXPECT_THROW(import_machine(std::vector<std::string>{path}), InputError);
  fs::remove(path);
}

}  // namespace
}  // namespace gdr
