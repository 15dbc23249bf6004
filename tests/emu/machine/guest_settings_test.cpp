#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "emu/image/kernel_image.hpp"
#include "emu/machine/gpu_memory.hpp"
#include "emu/machine/pci_overlay.hpp"
#include "emu/machine/refusals.hpp"
#include "emu/run/console_lines.hpp"
#include "src/common/error.hpp"
#include "src/common/file.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using namespace gdr;

const ModelLibrary& models() {
  static const ModelLibrary library(GDR_PROJECT_DIR "/models");
  return library;
}

Topology server(const std::string& name, const std::vector<std::string>& settings = {}) {
  return load_topology(GDR_PROJECT_DIR "/topologies/servers/" + name + ".json",
                       parse_settings(settings));
}

Topology two_nics(const std::vector<std::string>& settings = {}) {
  return load_topology(GDR_PROJECT_DIR "/tests/emulation/one-gpu-two-nics.json",
                       parse_settings(settings));
}

emu::PcieTree tree_of(const Topology& topology) {
  const Graph graph(topology);
  return emu::pcie_tree(topology.hosts.front(), 0, emu::gpu_memory({graph, models()}, 0),
                        [](const Device& gpu) { return "/run/" + gpu.name; });
}

std::string overlay_text(const Topology& topology) {
  const Graph graph(topology);
  return emu::pci_overlay({graph, models()}, 0, tree_of(topology));
}

/// Registers by "WHERE SPACE OFFSET", with "MASK VALUE WRITABLE".
std::map<std::string, std::string> overlay_of(const Topology& topology) {
  std::istringstream text(overlay_text(topology));
  std::map<std::string, std::string> registers;
  std::string tag, where, space, offset, rest;
  while (text >> tag >> where >> space >> offset && std::getline(text, rest)) {
    EXPECT_EQ(tag, "#pci");
    EXPECT_TRUE(registers.emplace(where + " " + space + " " + offset, rest.substr(1)).second)
        << "twice: " << where << offset;
  }
  return registers;
}

/// Where a device is, as "d10" or "p10".
std::string place_of(const Topology& topology, const std::string& device, char kind) {
  std::ostringstream text;
  text << kind << std::hex
       << tree_of(topology).places.at(*device_index(topology.hosts.front(), device));
  return text.str();
}

TEST(EmuOverlay, AK40BelowASandyBridgeLooksLikeOne) {
  const auto registers = overlay_of(server("sandybridge-one-socket"));
  // Slot 2 is the GPU's, slot 3 the NIC's: 8 times that, hexadecimal.
  const std::map<std::string, std::string> expected{
      {"p10 c 0",
       "ffffffff 3c008086 0"},   // the host bridge's first port, by which the kernel identifies it
      {"p10 p c", "3ff 103 0"},  // LnkCap: x16, 8 GT/s
      {"p10 p 10", "3ff0000 1030000 0"},  // LnkSta
      {"p10 p 2c", "fe e 0"},             // LnkCap2: 2.5, 5 and 8 GT/s
      {"d10 c 0", "ffffffff 102310de 0"},
      {"d10 c 8", "ffffff00 3020000 0"},  // 3D controller
      {"d10 p 4", "7 1 0"},               // DevCap: MPS 256
      {"d10 p 8", "70e0 2020 70e0"},      // DevCtl: MPS 256, MRRS 512
      {"d10 p c", "3ff 103 0"},
      {"d10 p 10", "3ff0000 1030000 0"},
      {"d10 p 2c", "fe e 0"},
      {"d10 b 2", "10000000"},  // 256 MiB
  };
  for (const auto& [where, what] : expected) {
    const auto found = registers.find(where);
    ASSERT_NE(found, registers.end()) << where;
    EXPECT_EQ(found->second, what) << where;
  }
  EXPECT_EQ(registers.at("p18 c 0"), "ffffffff 3c008086 0")
      << "the second port: QEMU's own ID would give it away";
  EXPECT_EQ(registers.at("d18 c 8"), "ffffff00 2070000 0") << "an InfiniBand controller";
}

TEST(EmuOverlay, PortsHaveTheTopologysAcsBitsAndTheirSwitchsId) {
  const Topology topology =
      server("dgx-a100", {"h0/gpu0.acs=RR+CR", "h0/gpu0.ats=true", "h0/nic0.acs=SV+EC"});
  const auto registers = overlay_of(topology);
  // RR is bit 2, CR bit 3; the port can do all but egress control, and keeps what is written.
  EXPECT_EQ(registers.at(place_of(topology, "gpu0", 'p') + " a 4"), "ffffffff c005f 5f0000");
  EXPECT_EQ(registers.at(place_of(topology, "nic0", 'p') + " a 4"), "ffffffff 21007f 7f0000");
  EXPECT_EQ(registers.at(place_of(topology, "gpu0", 'd') + " t 4"), "ffffffff 80000000 80000000");
  EXPECT_EQ(registers.count(place_of(topology, "gpu1", 'd') + " t 4"), 0U) << "not said";
  EXPECT_EQ(registers.at(place_of(topology, "gpu0", 'p') + " c 0"), "ffffffff c0101000 0");
  EXPECT_EQ(registers.at(place_of(topology, "gpu0", 'd') + " b 2"), "2000000000")
      << "not the size it was cut to";
}

TEST(EmuOverlay, ALinkThatRunsSlowerThanItCanSaysBoth) {
  const Topology topology =
      server("sandybridge-one-socket", {"h0/nic0.link=gen2x8", "h0/nic0.link_capability=gen3x16"});
  const auto registers = overlay_of(topology);
  EXPECT_EQ(registers.at("p18 p 10"), "3ff0000 820000 0");
  EXPECT_EQ(registers.at("p18 p c"), "3ff 103 0");
  EXPECT_EQ(registers.at("d18 p 10"), "3ff0000 820000 0");
}

TEST(EmuOverlay, ASlotIsNoBetterThanItRunsUnlessTheTopologySaysSo) {
  const auto registers = overlay_of(server("sandybridge-one-socket", {"h0/nic0.link=gen2x4"}));
  EXPECT_EQ(registers.at("p18 p c"), "3ff 42 0");
  EXPECT_EQ(registers.at("d18 p c"), "3ff 103 0") << "what the card's model can do";
}

TEST(EmuOverlay, BelowOneRootPortAllSendPayloadsThatAllTake) {
  const auto payload = [](const std::vector<std::string>& settings, const char* device) {
    const Topology topology = server("dgx-a100", settings);
    const std::string value = overlay_of(topology).at(place_of(topology, device, 'd') + " p 8");
    return 128U << (std::stoul(value.substr(value.find(' ') + 1), nullptr, 16) >> 5U & 7U);
  };
  EXPECT_EQ(payload({}, "nic0"), 256U) << "its model takes 512 B, the GPUs 256";
  EXPECT_EQ(payload({}, "nic8"), 512U) << "alone below its port";
  EXPECT_EQ(payload({"h0/gpu0.max_payload=128B"}, "nic0"), 128U)
      << "what the topology says of another";
  EXPECT_EQ(payload({"h0/gpu2.max_payload=128B"}, "nic0"), 256U) << "below another port";
  EXPECT_EQ(payload({"h0/nic0.max_payload=512B", "h0/gpu0.max_payload=128B"}, "nic0"), 512U)
      << "its own";
}

TEST(EmuOverlay, OrderingOfNicsIsRelaxedUnlessTheTopologySaysNo) {
  const auto relaxed = [](const std::vector<std::string>& settings) {
    return std::stoul(overlay_of(two_nics(settings))
                          .at(place_of(two_nics(), "nic0", 'd') + " p 8")
                          .substr(5),
                      nullptr, 16) >>
               4U &
           1U;
  };
  EXPECT_EQ(relaxed({}), 1U);
  EXPECT_EQ(relaxed({"h0/nic0.relaxed_ordering=false"}), 0U);
}

TEST(EmuNics, RdmaDevicesShowTheTopologysRate) {
  const auto lines = [](const std::string& rate) {
    const Topology topology = two_nics({"h0/nic0.port_rate=" + rate});
    const Graph graph(topology);
    return emu::nic_settings({graph, models()}, 0);
  };
  const auto first = [&](const std::string& rate) {
    return lines(rate).substr(0, lines(rate).find('\n'));
  };
  // enum ib_port_speed: 16 FDR, 32 EDR, 64 HDR, 128 NDR; enum ib_port_width: 1 for one lane, 2 for
  // four, 4 for eight, 16 for two.
  EXPECT_EQ(first("400Gb/s"), "#nic 0 128 2");
  EXPECT_EQ(first("200Gb/s"), "#nic 0 64 2");
  EXPECT_EQ(first("100Gb/s"), "#nic 0 32 2");
  EXPECT_EQ(first("54.5Gb/s"), "#nic 0 16 2");
  EXPECT_EQ(first("50Gb/s"), "#nic 0 64 1");
  EXPECT_EQ(first("25Gb/s"), "#nic 0 32 1");
  EXPECT_EQ(first("800Gb/s"), "#nic 0 128 4");
  EXPECT_NE(lines("25Gb/s").find("\n#nic 1 "), std::string::npos) << "the other is its model's";
}

TEST(EmuOverlay, WhatNobodySaysIsLeftAlone) {
  const Topology topology =
      read_topology(json::parse(R"({"format": 1, "name": "t", "hosts": [{"name": "h0",
      "sockets": [{"name": "cpu0"}], "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
      "devices": [{"name": "sw0", "kind": "switch", "under": "numa0"}, {"name": "nvme0", "kind": "nvme", "under": "sw0"}]}]})",
                                "t.json"),
                    "t.json", ".");
  EXPECT_EQ(overlay_text(topology), "");
  EXPECT_EQ(emu::processor_identity(topology.hosts.front(), models()), "");
  EXPECT_EQ(emu::iommu_parameters(topology.hosts.front(), models()), "");
}

TEST(EmuOverlay, EveryServerGivesLinesTheModuleTakes) {
  for (const char* name :
       {"dgx-a100", "dgx-h100", "nd-a100-v4", "p4d", "westmere-two-iohs",
        "threadripper-two-switchtec", "epyc-pex890xx", "gh200", "mi300x-8gpu", "hgx-b200"})
    EXPECT_FALSE(overlay_of(server(name)).empty()) << name;
}

TEST(EmuOverlay, TheProcessorIsTheModels) {
  EXPECT_EQ(emu::processor_identity(server("dgx-a100").hosts.front(), models()),
            "vendor=AuthenticAMD,family=23,model=49,stepping=1,model-id=AMD EPYC 7002 (Rome)");
  EXPECT_EQ(emu::processor_identity(server("gh200").hosts.front(), models()), "") << "no x86";
  EXPECT_EQ(emu::iommu_parameters(server("dgx-a100").hosts.front(), models()),
            "amd_iommu=on iommu=pt");
  EXPECT_EQ(emu::iommu_parameters(server("dgx-h100").hosts.front(), models()),
            "intel_iommu=on iommu=pt");
  EXPECT_EQ(emu::iommu_parameters(server("dgx-h100", {"iommu=translate"}).hosts.front(), models()),
            "intel_iommu=on");
  EXPECT_EQ(emu::iommu_parameters(server("p4d").hosts.front(), models()), "intel_iommu=off");
}

TEST(EmuRefusals, ABlockedPairIsRefusedAndTheOtherIsNot) {
  EXPECT_EQ(emu::refused_pairs(two_nics(), 0, models()), "#refuse gpu0-nic1 legacy-ioh\n");
  EXPECT_EQ(emu::refused_pairs(server("dgx-a100"), 0, models()), "");
}

TEST(EmuRefusals, MissingSoftwareIsTheGuestsOwnModulesBusiness) {
  const Topology topology = server("sandybridge-one-socket", {"nvidia_peermem=false"});
  EXPECT_EQ(emu::refused_pairs(topology, 0, models()), "");
  EXPECT_FALSE(emu::has_peermem(topology.hosts.front()));
  EXPECT_TRUE(emu::has_peermem(server("sandybridge-one-socket").hosts.front()))
      << "not said: there";
}

TEST(EmuRefusals, AGpusWindowIsItsBarWithoutWhatTheDriverKeeps) {
  const Topology topology = server("sandybridge-one-socket");
  const Graph graph(topology);
  EXPECT_EQ(emu::gpu_settings({graph, models()}, 0, {0, 16, 24}),
            "#gpu 0 16 234881024 1\n");  // 224 MiB
  const Topology amd = server("mi300x-8gpu");
  const Graph amd_graph(amd);
  const std::string text = emu::gpu_settings({amd_graph, models()}, 0, tree_of(amd).places);
  EXPECT_TRUE(text.substr(0, text.find('\n')).ends_with(" 0"))
      << "needs no nvidia-peermem: " << text;
}

TEST(EmuRefusals, FaultsAreReadAndWrongOnesTold) {
  const Topology topology = two_nics();
  const emu::Refusal refusal = emu::parse_refusal("h0/gpu0-nic1,after=3,above=64KiB", topology);
  EXPECT_EQ(refusal.host, "h0");
  EXPECT_EQ(refusal.rule, "gpu0-nic1,after=3,above=65536");
  EXPECT_EQ(emu::parse_refusal("*/gpu*-nic*", topology).host, "");
  const auto told = [&](const std::string& text) {
    try {
      emu::parse_refusal(text, topology);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string cure =
      "; write HOST/gpuN-nicM, with * for any, then perhaps ,after=COUNT and ,above=SIZE";
  EXPECT_EQ(told("gpu0-nic0"), "--refuse-registration gpu0-nic0: no host" + cure);
  EXPECT_EQ(told("h1/gpu0-nic0"), "--refuse-registration h1/gpu0-nic0: there is no host h1" + cure);
  EXPECT_EQ(told("h0/gpu1-nic0"), "--refuse-registration h0/gpu1-nic0: there is no gpu1" + cure);
  EXPECT_EQ(told("h0/gpu0"), "--refuse-registration h0/gpu0: no pair" + cure);
  EXPECT_EQ(told("h0/gpu0-nicX"),
            "--refuse-registration h0/gpu0-nicX: \"nicX\" has no number" + cure);
  EXPECT_EQ(told("h0/gpu0-nic0,after=x"),
            "--refuse-registration h0/gpu0-nic0,after=x: after=x is no count" + cure);
  EXPECT_EQ(told("h0/gpu0-nic0,size=1"),
            "--refuse-registration h0/gpu0-nic0,size=1: \"size\" is not known" + cure);
}

/// A bzImage with an uncompressed payload, the boot protocol's four numbers, and the size after the
/// payload.
std::string image_of(const std::string& payload) {
  std::string image(2 * 512, '\0');
  const auto number = [&](std::size_t at, std::size_t value) {
    for (std::size_t byte = 0; byte < 4; ++byte)
      image[at + byte] = static_cast<char>(value >> (8 * byte));
  };
  image[0x1f1] = 1;
  image.replace(0x202, 4, "HdrS");
  number(0x248, 16);
  number(0x24c, payload.size() + 4);
  return image + std::string(16, 'x') + payload + "size" + "behind";
}

TEST(EmuKernelImage, TheElfFileInsideIsFoundWhenItStartsByPvh) {
  const std::string note("\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0", 16);
  const std::string elf =
      "\x7f"
      "ELF and more " +
      note + "entry";
  EXPECT_EQ(emu::unpacked_kernel(image_of(elf)), elf);
  EXPECT_EQ(emu::unpacked_kernel(image_of("\x7f"
                                          "ELF without the note")),
            "");
  EXPECT_EQ(emu::unpacked_kernel(image_of("no ELF file" + note)), "");
}

TEST(EmuKernelImage, WhatIsNoKernelHasNone) {
  EXPECT_EQ(emu::unpacked_kernel(""), "");
  EXPECT_EQ(emu::unpacked_kernel(std::string(4096, 'x')), "");
  EXPECT_EQ(emu::unpacked_kernel(image_of("\x7f"
                                          "ELF")
                                     .substr(0, 1030)),
            "")
      << "it is cut off";
}

TEST(EmuConsoleLines, OnlyWholeLinesOfOurModulesAndEachOnce) {
  const std::string file = testing::TempDir() + "console";
  emu::ConsoleLines lines(file + ".none");
  EXPECT_TRUE(lines.take().empty());
  lines = emu::ConsoleLines(file);
  write_file(file,
             "[ 1.0] other\r\n[ 2.0] gdr: gpu0 on nic1 refused: legacy-ioh\r\n[ 3.0] gdr: gp");
  EXPECT_EQ(lines.take(), std::vector<std::string>{"gpu0 on nic1 refused: legacy-ioh"});
  EXPECT_TRUE(lines.take().empty());
  std::ofstream(file, std::ios::app) << "u1\n";
  EXPECT_EQ(lines.take(), std::vector<std::string>{"gpu1"});
}

}  // namespace
