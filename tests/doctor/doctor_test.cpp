#include <gtest/gtest.h>

#include <algorithm>

#include "src/common/error.hpp"
#include "src/doctor/doctor.hpp"
#include "src/doctor/gather.hpp"
#include "src/import/rdma_topo.hpp"

namespace gdr {
namespace {

const ModelLibrary& models() {
  static const ModelLibrary library(std::string(GDR_PROJECT_DIR) + "/models");
  return library;
}

observed::Capture capture() {
  observed::Capture one;
  const std::string nic = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0";
  one.files.add_link("sys/bus/pci/devices/0000:01:00.0",
                     "../../../devices/pci0000:00/0000:00:01.0/0000:01:00.0");
  one.files.add_file(nic + "/vendor", "0x15b3\n");
  one.files.add_file(nic + "/device", "0x1021\n");
  one.files.add_file(nic + "/class", "0x020000\n");
  std::string config(4096, '\0');
  config.replace(0, 4, "\xb3\x15\x21\x10");
  config[0x100] = '\x03';  // a serial number
  config[0x102] = '\x01';
  config.replace(0x104, 8, "SERIAL!!");
  one.files.add_file(nic + "/config", config);
  one.files.add_link("sys/class/infiniband/mlx5_0",
                     "../../devices/pci0000:00/0000:00:01.0/0000:01:00.0/infiniband/mlx5_0");
  const std::string port = nic + "/infiniband/mlx5_0/ports/1";
  one.files.add_file(port + "/link_layer", "Ethernet\n");
  one.files.add_file(port + "/gids/3", "0000:0000:0000:0000:0000:ffff:0a01:0203\n");
  one.files.add_file(port + "/gid_attrs/types/3", "RoCE v2\n");
  one.files.add_file(port + "/gid_attrs/ndevs/3", "eth0\n");
  one.files.add_file("proc/cmdline",
                     "BOOT_IMAGE=/vmlinuz ip=10.1.2.3 hostname=alpha7 intel_iommu=on\n");
  one.files.add_file("proc/modules", "mlx5_core 1 1 mlx5_ib, Live 0x0\n");
  one.commands["nvidia-smi -L"] =
      "GPU 0: NVIDIA A40 (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n";
  one.commands["ethtool -S eth0"] =
      "driver of alpha7, 94:6d:ae:11:22:33\n local_ack_timeout_err: 3\n";
  return one;
}

const doctor::Check* find(const doctor::Report& report, const std::string& rule) {
  for (const doctor::Check& check : report.checks)
    if (check.rule == rule) return &check;
  return nullptr;
}

doctor::Report examine(const observed::Capture& one, const std::string& env = {}) {
  std::vector<NamedText> inputs{{json::dump(to_json(one)), "capture"}};
  if (!env.empty()) inputs.push_back({env, "env"});
  return doctor::examine(inputs, models());
}

std::vector<std::string> commands_for(const std::string& text) {
  std::vector<std::string> commands;
  for (const doctor::Elsewhere& one : doctor::examine({{text, "some.txt"}}, models()).elsewhere)
    commands.push_back(one.command);
  return commands;
}

TEST(Doctor, SaysWhichCommandReadsAnInput) {
  using List = std::vector<std::string>;
  const std::string log = "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 8[0] [send] via NET/IB/0\n";
  const std::string table = "#  size  count  type  redop  root  time  algbw  busbw #wrong\n";
  EXPECT_EQ(commands_for(log), List{"gdr nccl --log some.txt"});
  EXPECT_EQ(commands_for(log + table),
            (List{"gdr verify MACHINE --measured some.txt", "gdr nccl --log some.txt"}))
      << "nccl-tests with NCCL_DEBUG=INFO";
  for (const char* text :
       {" #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n",
        " #bytes #iterations t_min[usec] t_max[usec] t_typical[usec]\n",
        "# OSU MPI-CUDA Bandwidth Test v5.9\n", "IoType: READ XferType: NEW Threads: 0\n",
        "Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n",
        "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"})
    EXPECT_EQ(commands_for(text), List{"gdr verify MACHINE --measured some.txt"}) << text;
  EXPECT_EQ(commands_for("NCCL_NET_GDR_LEVEL=PHB\n[1] nvidia_peermem: Unknown symbol\nhello\n"),
            List{})
      << "the checklist reads all of it";
  EXPECT_EQ(doctor::examine({{log, "standard input"}}, models()).elsewhere.at(0).command,
            "gdr nccl --log FILE");
}

TEST(Capture, GoesThroughAFileUnchanged) {
  const observed::Capture one = capture();
  const observed::Capture again =
      observed::read_capture(json::parse(json::dump(to_json(one)), "c"), "c");
  EXPECT_EQ(again.files.files(), one.files.files());
  EXPECT_EQ(again.files.links(), one.files.links());
  EXPECT_EQ(again.commands, one.commands);
}

TEST(Capture, NamesNumbersAndAddressesAreReplacedAlikeAndTheVerdictStays) {
  observed::Capture one = capture();
  const auto rules = [](const doctor::Report& report) {
    std::vector<std::string> names;
    for (const doctor::Check& check : report.checks) names.push_back(check.rule);
    return names;
  };
  const auto before = rules(examine(one));
  doctor::make_anonymous(one, "alpha7");
  const std::string text = json::dump(to_json(one));
  for (const char* secret : {"alpha7", "10.1.2.3", "0a01:0203", "89ab-cdef", "94:6d:ae", "SERIAL"})
    EXPECT_EQ(text.find(secret), std::string::npos) << secret;
  for (const auto& [path, content] : one.files.files())
    EXPECT_EQ(content.find("SERIAL"), std::string::npos) << path;
  EXPECT_NE(text.find("0000:0000:0000:0000:0000:ffff:c000:"), std::string::npos)
      << "still an IPv4 address";
  EXPECT_NE(text.find("mlx5_0"), std::string::npos);
  EXPECT_EQ(rules(examine(one)), before);
}

TEST(Doctor, AWrongGidIndexAppearsAndGoesAway) {
  EXPECT_NE(find(examine(capture(), "NCCL_IB_GID_INDEX=1\n"), "gid-index-wrong"), nullptr);
  EXPECT_EQ(find(examine(capture(), "NCCL_IB_GID_INDEX=3\n"), "gid-index-wrong"), nullptr);
  EXPECT_EQ(find(examine(capture()), "gid-index-wrong"), nullptr);
}

TEST(Doctor, AModuleThatIsNotLoadedAppearsAndGoesAway) {
  observed::Capture one = capture();
  EXPECT_NE(find(examine(one), "peermem-missing"), nullptr);
  one.files.add_file("proc/modules", "nvidia_peermem 1 0 - Live 0x0\n");
  EXPECT_EQ(find(examine(one), "peermem-missing"), nullptr);
  EXPECT_NE(find(examine(one), "peermem-not-seen"), nullptr) << "memory_peers does not exist";
  one.files.add_file("sys/kernel/mm/memory_peers/nv_mem/version", "1.3\n");
  EXPECT_EQ(find(examine(one), "peermem-not-seen"), nullptr);
}

doctor::Report of_text(const std::string& text) {
  return doctor::examine({{text, "pasted"}}, models());
}

TEST(Doctor, BootMessagesOfTheIommuAreNoFaults) {
  EXPECT_EQ(find(of_text("[    0.0] DMAR: Host address width 46\n[    0.0] DMAR: DRHD base: "
                         "0x000000fed90000 flags: 0x1\n[    0.1] DMAR-IR: Enabled IRQ remapping\n"),
                 "iommu-faults"),
            nullptr);
  EXPECT_NE(find(of_text("[   10.0] DMAR: [DMA Write NO_PASID] Request device [81:00.0] fault addr "
                         "0x7f0000 [fault reason 0x05] PTE Write access is not set\n"),
                 "iommu-faults"),
            nullptr);
  EXPECT_NE(find(of_text("[   10.0] DMAR: DRHD: handling fault status reg 3\n"), "iommu-faults"),
            nullptr);
}

TEST(Doctor, AFailingCallOfTheDriverIsNoGeForce) {
  const std::string a100 =
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n";
  const auto unknown =
      of_text(a100 + "nvidia_peermem: Unknown symbol nvidia_p2p_get_pages (err -22)\n");
  EXPECT_EQ(find(unknown, "gpu-class-unsupported"), nullptr);
  EXPECT_NE(find(unknown, "peermem-symbol-mismatch"), nullptr);
  EXPECT_EQ(
      find(of_text(a100 +
                   "nvidia_peermem: nvidia_p2p_get_pages failed with error -12: out of BAR1\n"),
           "gpu-class-unsupported"),
      nullptr);
  EXPECT_NE(
      find(of_text(
               "GPU 0: NVIDIA GeForce RTX 3090 (UUID: GPU-01234567-89ab-cdef-0123-456789abcdef)\n"),
           "gpu-class-unsupported"),
      nullptr);
}

TEST(Doctor, AnAnswerIsSortedByWhatMattersMost) {
  const doctor::Report report = examine(capture(), "NCCL_IB_GID_INDEX=1\n");
  const auto key = [](const doctor::Check& check) {
    return std::pair(-static_cast<int>(check.state),
                     check.state == doctor::State::problem ? check.severity : Severity::note);
  };
  EXPECT_TRUE(std::is_sorted(report.checks.begin(), report.checks.end(),
                             [&](const auto& a, const auto& b) { return key(a) < key(b); }));
  EXPECT_EQ(report.checks.front().severity, Severity::error);
}

TEST(Doctor, ABrokenCaptureIsRefused) {
  const auto refusal = [](const std::string& text) {
    try {
      (void)doctor::examine({{text, "c.json"}}, models());
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(refusal(R"({"format": 1, "captured": {"binary": {"sys/x": "!!"}}})").find("not base64"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format": 1, "captured": {"files": 3}})").find("/captured/files"),
            std::string::npos);
  EXPECT_NE(refusal(R"({"format": 1, "captured": {"other": {}}})").find("unknown member"),
            std::string::npos);
}

}  // namespace
}  // namespace gdr
