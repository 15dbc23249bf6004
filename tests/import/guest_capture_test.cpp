// Compares captures from a guest of `gdr emulate tests/emulation/one-switch.json` with that
// topology; the guest tests do the same with live guests. The captures in tests/data/captures omit
// QEMU's own functions except the management interface.
#include <gtest/gtest.h>

#include <algorithm>

#include "emu/machine/guest_plan.hpp"
#include "src/common/file.hpp"
#include "src/doctor/doctor.hpp"
#include "src/doctor/gather.hpp"
#include "src/import/capture_json.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/machine_difference.hpp"

namespace gdr {
namespace {

const ModelLibrary& models() {
  static const ModelLibrary library(std::string(GDR_PROJECT_DIR) + "/models");
  return library;
}

Topology original(const std::vector<std::string>& settings = {}) {
  return load_topology(GDR_PROJECT_DIR "/tests/emulation/one-switch.json",
                       parse_settings(settings));
}

observed::Capture captured() {
  const std::string file = GDR_PROJECT_DIR "/tests/data/captures/one-switch.json";
  return observed::read_capture(json::parse(read_file(file), file), file);
}

Topology imported(const observed::Capture& capture) {
  return import_machine(std::vector<NamedText>{{json::dump(to_json(capture)), "capture"}},
                        &models());
}

const std::string nic =
    "sys/devices/pci0000:01/0000:01:00.0/0000:02:00.0/0000:03:01.0/0000:05:00.0";
const std::string port = "sys/devices/virtual/infiniband/rxe0/ports/1";

const Device& only_nic(const Topology& topology) {
  return get(topology, devices_of_kind(topology, DeviceKind::nic).at(0));
}

std::size_t nics_of(const Topology& topology) {
  return devices_of_kind(topology, DeviceKind::nic).size();
}

TEST(GuestCapture, IsTheTopologyThatTheGuestWasStartedFrom) {
  EXPECT_EQ(test::differences(original(), imported(captured()), models()),
            std::vector<std::string>());
}

TEST(GuestCapture, EachDifferenceIsNamed) {
  const Topology seen = imported(captured());
  const auto has = [&](const std::vector<std::string>& lines, const std::string& text) {
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
      return line.find(text) != std::string::npos;
    });
  };
  const std::string host = "trainer-seven";
  for (const auto& [setting, text] : std::vector<std::pair<std::string, std::string>>{
           {host + "/gpu0.acs=RR", "gpu0: ACS of its port: 0x4 wanted, 0x0 seen"},
           {host + "/gpu0.acs=RR", "gpu0 and nic0: findings: acs-redirect wanted, none seen"},
           {host + "/gpu0.ats=true", "gpu0: ATS: yes wanted, not known seen"},
           {host + "/gpu0.link=gen3x16", "gpu0: link: gen3x16 wanted, gen4x16 seen"},
           {host + "/nic0.link_capability=gen5x16",
            "nic0: what the link can do: gen5x16 wanted, gen4x16 seen"},
           {host + "/gpu0.bar_size=256MiB", "gpu0: BAR: 256MiB wanted, 128GiB seen"},
           {host + "/gpu0.bar_size=256MiB", "gpu0 and nic0: findings: bar-too-small"},
           {host + "/gpu0.max_payload=128B", "gpu0: maximum payload: 128B wanted, 256B seen"},
           {host + "/nic0.max_read_request=4KiB",
            "nic0: read request size: 4KiB wanted, 512B seen"},
           {host + "/nic0.relaxed_ordering=false", "nic0: relaxed ordering: no wanted, yes seen"},
           {host + "/nic0.link_layer=infiniband", "nic0: Ethernet: no wanted, yes seen"},
           {host + "/nic0.port_rate=200Gb/s",
            "nic0: rate of a port: 200.0 Gb/s wanted, 100.0 seen"},
           {host + "/nic0.pci_id=15b3:1017", "nic0: PCI id: 15b3:1017 wanted, 15b3:101d seen"},
           {"iommu=translate", "host: IOMMU: translate wanted, passthrough seen"},
           {"iommu=translate", "gpu0 and nic0: answer: unknown wanted, works seen"},
           {"nvidia_peermem=false", "host: nvidia-peermem: no wanted, yes seen"},
           {host + ".virtual_machine=true", "host: virtual machine: yes wanted, no seen"}})
    EXPECT_TRUE(has(test::differences(original({setting}), seen, models()), text))
        << setting << " does not show as " << text;
}

TEST(GuestCapture, ADifferentTreeIsNamed) {
  const Topology seen = imported(captured());
  Topology more = original();
  more.hosts.front().devices.push_back(more.hosts.front().devices.back());
  more.hosts.front().devices.back().name = "nic1";
  const auto lines = test::differences(more, seen, models());
  EXPECT_NE(
      std::find(lines.begin(), lines.end(), "sw0: number of devices below it: 3 wanted, 2 seen"),
      lines.end());
  Topology swapped = original();
  std::swap(swapped.hosts.front().devices[2], swapped.hosts.front().devices[3]);
  EXPECT_EQ(test::differences(swapped, seen, models()).front(), "nic0: kind: nic wanted, gpu seen");
}

TEST(GuestCapture, ItsManagementInterfaceIsNoNic) {
  observed::Capture one = captured();
  EXPECT_EQ(nics_of(imported(one)), 1U);
  // A function with an RDMA device is a NIC, whatever its ID: in a guest a topology's NIC may have
  // no ID.
  one.files.add_link("sys/class/infiniband/rxe1", "/sys/devices/virtual/infiniband/rxe1");
  one.files.add_link("sys/devices/virtual/infiniband/rxe1/device",
                     "/sys/devices/pci0000:00/0000:00:04.0");
  one.files.add_file("sys/devices/virtual/infiniband/rxe1/ports/1/state", "4: ACTIVE\n");
  EXPECT_EQ(nics_of(imported(one)), 2U);
}

TEST(GuestCapture, InterfacesBehindVirtioAreFound) {
  const observed::Machine machine = captured().machine();
  const observed::Function* function = find(machine, "0000:05:00.0");
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function->networks, std::vector<std::string>{"nic0"});
}

TEST(GuestCapture, SoftRoceSaysNothingOfTheNicsLinkLayer) {
  observed::Capture one = captured();
  EXPECT_EQ(only_nic(imported(one)).link_layer, LinkLayer::ethernet) << "by its class";
  one.files.add_file(nic + "/class", "0x020700\n");
  EXPECT_EQ(only_nic(imported(one)).link_layer, LinkLayer::infiniband)
      << "although rxe's port is Ethernet";
}

TEST(GuestCapture, FdrCarriesWhatItsCodingLeaves) {
  observed::Capture one = captured();
  EXPECT_NEAR(only_nic(imported(one)).port_rate.value().bytes_per_second * 8e-9, 100, 0.01);
  one.files.add_file(port + "/rate", "56 Gb/sec (4X FDR)\n");
  EXPECT_NEAR(only_nic(imported(one)).port_rate.value().bytes_per_second * 8e-9, 54.54, 0.01);
}

TEST(GuestCapture, AGuestThatSaysSoIsAVirtualMachine) {
  observed::Capture one = captured();
  EXPECT_FALSE(imported(one).hosts.front().virtual_machine.value_or(false));
  one.files.add_file("sys/class/dmi/id/sys_vendor", "QEMU\n");
  EXPECT_TRUE(imported(one).hosts.front().virtual_machine.value_or(false));
}

TEST(GuestCapture, ItsPlanShowsAVirtualMachineOnlyWhereTheTopologyIsOne) {
  const auto cpu_of_plan = [](const Topology& topology, bool kvm) {
    emu::RunPlan run;
    run.kvm = kvm;
    const auto arguments = emu::plan_guest(topology, 0, run, models()).qemu;
    const auto at = std::find(arguments.begin(), arguments.end(), "-cpu");
    const bool named = std::find(arguments.begin(), arguments.end(),
                                 "type=1,manufacturer=gdr,product=one-switch") != arguments.end();
    return std::pair(*std::next(at), named);
  };
  EXPECT_EQ(cpu_of_plan(original(), true), std::pair(std::string("host,-hypervisor"), true));
  EXPECT_EQ(cpu_of_plan(original(), false).first.substr(0, 36),
            "max,-hypervisor,vendor=AuthenticAMD,");
  EXPECT_EQ(cpu_of_plan(original({"trainer-seven.virtual_machine=true"}), true),
            std::pair(std::string("host"), false));
}

TEST(GuestCapture, FindingsOfTheChecklistAppearAndGoAway) {
  const auto rules = [](const observed::Capture& one) {
    std::vector<std::string> found;
    for (const doctor::Check& check :
         doctor::examine({{json::dump(to_json(one)), "capture"}}, models()).checks)
      if (check.state == doctor::State::problem) found.push_back(check.rule);
    return found;
  };
  const auto has = [&](const observed::Capture& one, const std::string& rule) {
    const auto found = rules(one);
    return std::find(found.begin(), found.end(), rule) != found.end();
  };
  observed::Capture one = captured();
  for (const char* rule :
       {"peermem-missing", "gid-index-wrong", "vm-hides-topology", "nic-without-rdma"})
    EXPECT_FALSE(has(one, rule)) << rule;
  one.commands["settings of NCCL"] = "NCCL_IB_GID_INDEX=7\n";
  EXPECT_TRUE(has(one, "gid-index-wrong"));
  one.commands["settings of NCCL"] = "NCCL_IB_GID_INDEX=1\n";
  EXPECT_FALSE(has(one, "gid-index-wrong"));
}

TEST(Anonymous, ParametersMountsBuildersAndInterfacesTellNoNames) {
  observed::Capture one;
  one.files.add_file("proc/cmdline",
                     "BOOT_IMAGE=/vmlinuz root=/dev/mapper/vega-root nfsroot=store:/vega "
                     "ip=::::vega intel_iommu=on "
                     "iommu=pt\n");
  one.files.add_file("proc/mounts",
                     "/dev/mapper/vega-root / ext4 rw,relatime 0 0\nstore.example.com:/home/ada "
                     "/home/ada nfs4 rw 0 0\n"
                     "/dev/sdb1 /home/ada/scratch xfs rw,noatime 0 0\n");
  one.files.add_file("proc/version", "Linux version 6.8.0 (ada@vega) (gcc 12) #1 SMP\n");
  one.files.add_file("sys/devices/pci0000:00/0000:01:00.0/net/enx0a1b2c3d4e5f", "");
  one.files.add_link("sys/class/net/enx0a1b2c3d4e5f",
                     "/sys/devices/pci0000:00/0000:01:00.0/net/enx0a1b2c3d4e5f");
  one.commands["ethtool -S enx0a1b2c3d4e5f"] =
      "address 0A:1B:2C:3D:4E:5F of vega.example.com, not of vegan or vega2; vega\n";
  doctor::make_anonymous(one, "vega.example.com");
  const std::string text = json::dump(to_json(one));
  for (const char* secret :
       {"ada", "store", "/dev/mapper", "0a1b2c3d4e5f", "0A:1B", "example.com", "vega-root"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret << " in " << text;
  EXPECT_EQ(one.files.line("proc/cmdline"), "intel_iommu=on iommu=pt");
  EXPECT_EQ(*one.files.file("proc/mounts"), "disk / ext4 rw\ndisk /mount-1 xfs rw\n");
  EXPECT_EQ(one.files.line("proc/version"), "Linux version 6.8.0 (builder) (gcc 12) #1 SMP");
  ASSERT_EQ(one.commands.size(), 1U);
  EXPECT_EQ(one.commands.begin()->first, "ethtool -S enx020000000001");
  EXPECT_EQ(one.commands.begin()->second,
            "address 02:00:00:00:00:01 of host, not of vegan or vega2; host\n");
  EXPECT_TRUE(one.files.links().contains("sys/class/net/enx020000000001"));
}

TEST(Anonymous, NamesMadeOfGuidsShortAddressesAndHostNamesInCapitals) {
  observed::Capture one;
  one.files.add_file("sys/class/infiniband/rocex506b4b0300f4b6c8/node_guid",
                     "506b:4b03:00f4:b6c8\n");
  one.commands["rdma link"] =
      "link rocex506b4b0300f4b6c8/1 state ACTIVE netdev ens1 on NODE7 at "
      "2001:db8:7::5054:ff:fe12:3456 and fe80::5054:ff:fe12:3456\n";
  one.commands["ofed_info -s"] = "MLNX_OFED_LINUX-5.8-1.1.2.1:\n";
  one.commands["show_gids"] = "mlx5_0 0x506B4B0300F4B6C8 node7.example.com 10.1.2.3\n";
  doctor::make_anonymous(one, "node7.example.com");
  const std::string all = json::dump(to_json(one));
  for (const char* secret :
       {"506b4b0300f4b6c8", "506B4B", "506b:4b03", "NODE7", "node7", "5054:ff", "10.1.2.3"})
    EXPECT_EQ(all.find(secret), std::string::npos) << secret << "\n" << all;
  EXPECT_NE(all.find("MLNX_OFED_LINUX-5.8-1.1.2.1"), std::string::npos)
      << "a version is no address\n"
      << all;
  EXPECT_NE(all.find("/rocex020000000001/"), std::string::npos) << "as in the output of rdma\n"
                                                                << all;
  EXPECT_NE(one.commands.at("rdma link").find("rocex020000000001/1"), std::string::npos);
}

}  // namespace
}  // namespace gdr
