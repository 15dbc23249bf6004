#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "common/error.hpp"
#include "emu/addresses.hpp"
#include "emu/debian_packages.hpp"
#include "emu/gpu_memory.hpp"
#include "emu/guest_plan.hpp"
#include "emu/initramfs.hpp"
#include "emu/process.hpp"
#include "emu/run_folder.hpp"
#include "emu/shell.hpp"
#include "emu/wiring.hpp"
#include "topology/topology_json.hpp"

namespace {

using namespace gdr;
using Words = std::vector<std::string>;

const ModelLibrary& models() {
  static const ModelLibrary library(GDR_PROJECT_DIR "/models");
  return library;
}

Topology cluster(const std::string& name) { return load_topology(GDR_PROJECT_DIR "/topologies/clusters/" + name + ".json"); }

/// The value behind an option; "" when it is not there.
std::string option(const Words& words, const std::string& name) {
  const auto at = std::find(words.begin(), words.end(), name);
  return at == words.end() ? "" : *(at + 1);
}

TEST(EmuShell, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(emu::shell_line({"ib_write_bw", "--mmap=/dev/gdr-gpu0", "-F"}), "ib_write_bw --mmap=/dev/gdr-gpu0 -F");
  EXPECT_EQ(emu::shell_line({"sh", "-c", "echo 'a' $B", ""}), R"(sh -c 'echo '\''a'\'' $B' '')");
}

TEST(EmuShell, AShellReadsTheWordsBack) {
  const Words words{"a b", "it's", "$HOME", "\"", "\\", "x\ny", ""};
  emu::Signals signals;
  const auto finished = emu::run_to_end({"sh", "-c", "printf '[%s]' " + emu::shell_line(words)}, signals);
  std::string expected;
  for (const std::string& word : words) expected += "[" + word + "]";
  EXPECT_EQ(finished.output, expected);
}

TEST(EmuProcess, ReportsExitCodesAndSignals) {
  emu::Signals signals;
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "echo said; echo failed >&2; exit 3"}, signals).exit_code, 3);
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "kill -TERM $$"}, signals).exit_code, 128 + SIGTERM);
  EXPECT_EQ(emu::run_to_end({"sh", "-c", "echo said; echo failed >&2"}, signals).output, "said\nfailed\n");
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
      "kernel/a.ko: kernel/b.ko kernel/c-c.ko\nkernel/b.ko: kernel/c-c.ko\nkernel/c-c.ko:\nkernel/d.ko: kernel/c-c.ko\n";
  EXPECT_EQ(emu::load_order(dep, {"a", "d", "c_c"}), (Words{"kernel/c-c.ko", "kernel/b.ko", "kernel/a.ko", "kernel/d.ko"}));
  EXPECT_THROW(emu::load_order(dep, {"rdma_rxe"}), InputError);
}

TEST(EmuDebianPackages, FindsADependencyByName) {
  const std::string depends =
      "linux-headers-6.1.0-57-common (= 6.1.192-3), linux-kbuild-6.1 (>= 6.1.192-3), linux-compiler-gcc-12-x86";
  EXPECT_EQ(emu::dependency_named(depends, "linux-headers-", "-common"), "linux-headers-6.1.0-57-common");
  EXPECT_EQ(emu::dependency_named(depends, "linux-kbuild-"), "linux-kbuild-6.1");
  EXPECT_EQ(emu::dependency_named(depends, "linux-image-"), "");
}

TEST(EmuGpuMemory, IsCutToAPowerOfTwoThatFitsAndSaysSo) {
  const Topology topology = cluster("two-dgx-a100");
  const auto gpus = emu::gpu_memory(topology.hosts[0], models());
  ASSERT_EQ(gpus.size(), 8U);
  for (const auto& gpu : gpus) EXPECT_EQ(gpu.size, (Bytes{128U << 20U}));
  EXPECT_EQ(emu::cut_note(topology.hosts[0], gpus), "h0: GPU memory is cut to fit: 128MiB instead of 128GiB (8 GPUs)");
}

TEST(EmuWiring, NicsOfOneNumberAreJoined) {
  const Topology topology = cluster("two-sandybridge-two-sockets");
  const auto wiring = emu::wire_hosts(topology, 6);
  ASSERT_EQ(wiring.size(), 2U);
  for (const auto& host : wiring) {
    EXPECT_EQ(host.arguments, (Words{"-netdev", "stream,id=nic0,server=off,addr.type=fd,addr.str=6"}));
    EXPECT_EQ(host.descriptors.size(), 1U);
  }
  const auto alone = emu::wire_hosts(load_topology(GDR_PROJECT_DIR "/topologies/servers/gh200.json"), 6);
  EXPECT_EQ(alone[0].arguments, (Words{"-netdev", "hubport,id=nic0,hubid=0"}));
}

TEST(EmuGuestPlan, AHostOfTwoHasItsNeighboursAddresses) {
  emu::RunPlan run;
  run.kernel = {"6.1.192-3", "6.1.0-57-amd64", "/k/vmlinuz", "/k/modules", "/k/initramfs"};
  run.files = "/run";
  run.gpu_files = "/gpus";
  run.work_folder = "/home/me/it, here";
  run.command = {"echo", "a b"};
  const auto plan = emu::plan_guest(cluster("two-sandybridge-two-sockets"), 1, run, models());
  // Behind it are lines for our modules, comments to the shell.
  EXPECT_EQ(
      plan.settings.substr(0, plan.settings.find('#')),
      "GUEST_KERNEL=6.1.0-57-amd64\nGUEST_MODULES=/k/modules\nGUEST_FOLDER='/home/me/it, here'\nGUEST_PEERMEM=1\n"
      "GUEST_NICS=0/52:54:00:00:01:00/10.0.0.2\nGUEST_COMMAND='echo '\\''a b'\\'''\nexport GDR_HOST=h1\nexport GDR_HOST_INDEX=1\n"
      "export GDR_PEER_h0_NIC_0=10.0.0.1\nexport GDR_NIC_0=10.0.0.2\nexport GDR_PEERS=h0=10.0.0.1\n");
  EXPECT_EQ(option(plan.qemu, "-smp"), "2,sockets=2,cores=1");
  EXPECT_EQ(option(plan.qemu, "-accel"), "tcg,thread=single");
  EXPECT_NE(std::find(plan.qemu.begin(), plan.qemu.end(),
                      "local,id=folder,path=/home/me/it,, here,security_model=none,multidevs=remap"),
            plan.qemu.end());
}

TEST(EmuGuestPlan, ANumaNodeHasAProcessorAndMemory) {
  emu::RunPlan run;
  run.kvm = true;
  const auto plan = emu::plan_guest(cluster("two-dgx-a100"), 0, run, models());
  EXPECT_EQ(option(plan.qemu, "-smp"), "8,sockets=2,cores=4");
  EXPECT_EQ(option(plan.qemu, "-accel"), "kvm");
  EXPECT_NE(std::find(plan.qemu.begin(), plan.qemu.end(), "node,nodeid=7,memdev=numa7.memory,cpus=7"), plan.qemu.end());
}

}  // namespace
