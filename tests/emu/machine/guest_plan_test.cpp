#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "emu/image/debian_packages.hpp"
#include "emu/image/initramfs.hpp"
#include "emu/machine/addresses.hpp"
#include "emu/machine/gpu_memory.hpp"
#include "emu/machine/guest_plan.hpp"
#include "emu/process/process.hpp"
#include "emu/process/shell.hpp"
#include "emu/run/run_folder.hpp"
#include "emu/run/session.hpp"
#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using namespace gdr;
using Words = std::vector<std::string>;

const ModelLibrary& models() {
  static const ModelLibrary library(GDR_PROJECT_DIR "/models");
  return library;
}

Topology cluster(const std::string& name) {
  return load_topology(GDR_PROJECT_DIR "/topologies/clusters/" + name + ".json");
}

/// The value after an option; "" if the option is absent.
std::string option(const Words& words, const std::string& name) {
  const auto at = std::find(words.begin(), words.end(), name);
  return at == words.end() ? "" : *(at + 1);
}

TEST(EmuShell, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(emu::shell_line({"ib_write_bw", "--mmap=/dev/gdr-gpu0", "-F"}),
            "ib_write_bw --mmap=/dev/gdr-gpu0 -F");
  EXPECT_EQ(emu::shell_line({"sh", "-c", "echo 'a' $B", ""}), R"(sh -c 'echo '\''a'\'' $B' '')");
}

TEST(EmuShell, AShellReadsTheWordsBack) {
  const Words words{"a b", "it's", "$HOME", "\"", "\\", "x\ny", ""};
  emu::Signals signals;
  const auto finished =
      emu::run_to_end({"sh", "-c", "printf '[%s]' " + emu::shell_line(words)}, signals);
  std::string expected;
  for (const std::string& word : words) expected += "[" + word + "]";
  EXPECT_EQ(finished.output, expected);
}

TEST(EmuProcess, ReportsExitCodesAndSignals) {
  emu::Signals signals;
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "echo said; echo failed >&2; exit 3"}, signals).exit_code,
            3);
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "kill -TERM $$"}, signals).exit_code, 128 + SIGTERM);
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "echo said; echo failed >&2"}, signals).output,
            "said\nfailed\n");
  EXPECT_THROW(emu::run_to_end({"/no/such/program"}, signals), std::system_error);
}

TEST(EmuProcess, ASignalInterruptsAndKillsTheCommand) {
  emu::Signals signals;
  raise(SIGTERM);
  try {
    emu::run_to_end({"sleep", "60"}, signals);
    FAIL() << "not interrupted";
  } catch (const emu::Interrupted& interrupted) {
    EXPECT_EQ(interrupted.signal, SIGTERM);
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
}

TEST(EmuRunFolder, AnAbandonedOneIsRemovedByTheNextRunAndOneInUseIsNot) {
  const emu::RunFolder used;
  const std::string abandoned = used.path().substr(0, used.path().rfind('-')) + "-dead00";
  std::filesystem::create_directories(abandoned);
  std::string path;
  {
    const emu::RunFolder next;
    path = next.path();
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_FALSE(std::filesystem::exists(abandoned));
    EXPECT_TRUE(std::filesystem::exists(used.path()));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(EmuInitramfs, ModulesLoadBehindWhatTheyNeed) {
  const std::string dep =
      "kernel/a.ko: kernel/b.ko kernel/c-c.ko\nkernel/b.ko: "
      "kernel/c-c.ko\nkernel/c-c.ko:\nkernel/d.ko: kernel/c-c.ko\n";
  EXPECT_EQ(emu::load_order(dep, {"a", "d", "c_c"}),
            (Words{"kernel/c-c.ko", "kernel/b.ko", "kernel/a.ko", "kernel/d.ko"}));
  EXPECT_EQ(emu::load_order(dep, {"virtio_net", "d"}, "kernel/virtio_net.ko\n"),
            (Words{"kernel/c-c.ko", "kernel/d.ko"}));
  try {
    emu::load_order(dep, {"rdma_rxe", "a", "9p"}, "kernel/virtio_net.ko\n");
    FAIL() << "two modules are not there";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "the guest's kernel has no modules rdma_rxe, 9p");
  }
}

TEST(EmuDebianPackages, FindsADependencyByName) {
  const std::string depends =
      "linux-headers-6.1.0-57-common (= 6.1.192-3), linux-kbuild-6.1 (>= 6.1.192-3), "
      "linux-compiler-gcc-12-x86";
  EXPECT_EQ(emu::dependency_named(depends, "linux-headers-", "-common"),
            "linux-headers-6.1.0-57-common");
  EXPECT_EQ(emu::dependency_named(depends, "linux-kbuild-"), "linux-kbuild-6.1");
  EXPECT_EQ(emu::dependency_named(depends, "linux-image-"), "");
}

TEST(EmuGpuMemory, IsCutToAPowerOfTwoThatFitsAndSaysSo) {
  const Topology topology = cluster("two-dgx-a100");
  const Graph graph(topology);
  const auto gpus = emu::gpu_memory({graph, models()}, 0);
  ASSERT_EQ(gpus.size(), 8U);
  for (const auto& gpu : gpus) EXPECT_EQ(gpu.size, (Bytes{128U << 20U}));
  EXPECT_EQ(emu::cut_note(topology.hosts[0], gpus),
            "h0: GPU memory is cut to fit: 128MiB instead of 128GiB (8 GPUs)");
}

TEST(EmuGuestPlan, AHostOfTwoHasItsNeighboursAddresses) {
  emu::RunPlan run;
  run.kernel = {"6.1.192-3", "6.1.0-57-amd64", "/k/vmlinuz", "/k/modules", "/k/initramfs"};
  run.files = "/run";
  run.gpu_files = "/gpus";
  run.work_folder = "/home/me/it, here";
  run.tool = "/opt/gdr bin/gdr";
  const auto plan = emu::plan_guest(cluster("two-sandybridge-two-sockets"), 1, run, models());
  // Lines for our modules follow, which are comments to the shell.
  EXPECT_EQ(
      plan.settings.substr(0, plan.settings.find('#')),
      "GUEST_KERNEL=6.1.0-57-amd64\nGUEST_MODULES=/k/modules\nGUEST_FOLDER='/home/me/it, here'\n"
      "GUEST_TOOL='/opt/gdr bin/gdr'\nGUEST_PEERMEM=1\n"
      "GUEST_NICS=0/52:54:00:00:01:00/10.0.0.2\nGUEST_MANAGEMENT=52:54:00:01:01:00/"
      "192.168.0.2\nexport GDR_HOST=h1\nexport "
      "GDR_HOST_INDEX=1\n"
      "export GDR_PEER_h0_NIC_0=10.0.0.1\nexport GDR_NIC_0=10.0.0.2\nexport "
      "GDR_PEERS=h0=192.168.0.1\n");
  EXPECT_EQ(option(plan.qemu, "-smp"), "2,sockets=2,cores=1");
  EXPECT_EQ(option(plan.qemu, "-accel"), "tcg,thread=single");
  EXPECT_EQ(plan.nics, Words{"nic0"});
  for (const char* value : {"stream,id=mgmt0.net,server=off,addr.type=fd,addr.str=6",
                            "stream,id=nic0,server=off,addr.type=fd,addr.str=7",
                            "virtio-net-pci,netdev=mgmt0.net,mac=52:54:00:01:01:00,romfile="})
    EXPECT_NE(std::find(plan.qemu.begin(), plan.qemu.end(), value), plan.qemu.end()) << value;
  EXPECT_NE(
      std::find(plan.qemu.begin(), plan.qemu.end(),
                "local,id=folder,path=/home/me/it,, here,security_model=none,multidevs=remap"),
      plan.qemu.end());
}

TEST(EmuGuestPlan, ThreeHostsAreOnOneSwitchMoreThanASubnetHoldsAreRefused) {
  Topology topology = cluster("two-sandybridge-two-sockets");
  topology.hosts.push_back(topology.hosts.front());
  topology.hosts.back().name = "h2";
  std::vector<emu::GuestPlan> plans;
  for (std::size_t host = 0; host < 3; ++host)
    plans.push_back(emu::plan_guest(topology, host, {}, models()));
  Words ports;
  for (const auto& port : emu::fabric_ports(plans)) ports.push_back(port.name);
  EXPECT_EQ(ports, (Words{"h0/nic0", "h1/nic0", "h2/nic0"}));
  EXPECT_NE(plans[1].settings.find("GDR_PEERS='h0=192.168.0.1 h2=192.168.0.3'"), std::string::npos)
      << plans[1].settings;
  topology.hosts.resize(255, topology.hosts.back());
  EXPECT_THROW(emu::plan_guest(topology, 0, {}, models()), InputError);
}

TEST(EmuGuestPlan, ANumaNodeHasAProcessorAndMemory) {
  emu::RunPlan run;
  run.kvm = true;
  const auto plan = emu::plan_guest(cluster("two-dgx-a100"), 0, run, models());
  EXPECT_EQ(option(plan.qemu, "-smp"), "8,sockets=2,cores=4");
  EXPECT_EQ(option(plan.qemu, "-accel"), "kvm");
  EXPECT_NE(
      std::find(plan.qemu.begin(), plan.qemu.end(), "node,nodeid=7,memdev=numa7.memory,cpus=7"),
      plan.qemu.end());
}

}  // namespace
