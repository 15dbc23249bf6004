#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "src/catalog/model_library.hpp"
#include "src/common/error.hpp"
#include "src/common/json.hpp"
#include "src/nccl/paths.hpp"
#include "src/nccl/xml/read.hpp"
#include "src/topology/topology_json.hpp"
#include "tests/support/shared.hpp"

namespace gdr {
namespace {

const json::Value& at(const json::Value& value, std::string_view name) { return *value.find(name); }
const json::Array& list(const json::Value& value) { return *value.as<json::Array>(); }
int integer(const json::Value& value) { return static_cast<int>(*value.as<std::int64_t>()); }
double number(const json::Value& value) {
  if (const auto* i = value.as<std::int64_t>()) return static_cast<double>(*i);
  return *value.as<double>();
}
std::string text(const json::Value& value) { return *value.as<std::string>(); }
bool near(double a, double b) { return std::abs(a - b) <= 1e-3 * std::max(1.0, std::abs(b)); }
std::string flags(bool write, std::optional<bool> read) {
  return fmt::format("[{}, {}]", write ? 1 : 0, read ? (*read ? "1" : "0") : "unknown");
}
std::string flags(const json::Value& pair) {
  return fmt::format("[{}, {}]", integer(list(pair)[0]), integer(list(pair)[1]));
}

/// Compares NCCL's answers for one file and version with the model.
class Comparison {
 public:
  Comparison(const Topology& topology, const json::Value& expected)
      : topology_(topology), expected_(expected) {
    settings_.version = text(at(expected, "nccl"));
    view_ = nccl::view(topology, 0, nullptr, settings_);
  }

  void compare() {
    ASSERT_EQ(view_.gpus.size(), list(at(expected_, "gpus")).size());
    ASSERT_EQ(view_.nets.size(), list(at(expected_, "nets")).size());
    for (std::size_t i = 0; i < view_.nets.size(); ++i) {
      EXPECT_EQ(view_.nets[i].dev, integer(list(list(at(expected_, "nets"))[i])[0]));
      EXPECT_TRUE(near(view_.nets[i].gigabytes_per_second,
                       number(list(list(at(expected_, "nets"))[i])[3])));
    }
    compare_gpus();
    compare_nets();
    compare_gdr();
    compare_local_nets();
  }

 private:
  std::size_t gpu(const json::Value& rank) const {
    for (std::size_t i = 0; i < view_.gpus.size(); ++i)
      if (view_.gpus[i].rank == integer(rank)) return i;
    throw std::out_of_range("rank");
  }
  std::size_t net(const json::Value& dev) const {
    for (std::size_t i = 0; i < view_.nets.size(); ++i)
      if (view_.nets[i].dev == integer(dev)) return i;
    throw std::out_of_range("dev");
  }
  static void expect_path(const nccl::Path& path, const json::Value& type,
                          const json::Value& bandwidth, const std::string& what) {
    EXPECT_EQ(nccl::to_string(path.type), text(type)) << what;
    EXPECT_TRUE(near(path.gigabytes_per_second, number(bandwidth)))
        << what << ": " << path.gigabytes_per_second << " GB/s, NCCL " << number(bandwidth);
  }

  void compare_gpus() {
    for (const json::Value& pair : list(at(expected_, "gpu_gpu"))) {
      const std::string what =
          fmt::format("gpu {} gpu {}", integer(at(pair, "a")), integer(at(pair, "b")));
      const nccl::GpuGpu& mine = view_.gpu_gpus[gpu(at(pair, "a"))][gpu(at(pair, "b"))];
      expect_path(mine.path, at(pair, "path"), at(pair, "bw"), what);
      EXPECT_EQ(mine.p2p ? 1 : 0, integer(at(pair, "p2p"))) << what;
    }
  }
  void compare_nets() {
    for (const json::Value& pair : list(at(expected_, "gpu_net"))) {
      const std::string what =
          fmt::format("gpu {} net {}", integer(at(pair, "gpu")), integer(at(pair, "net")));
      const nccl::GpuNet& mine = view_.gpu_nets[gpu(at(pair, "gpu"))][net(at(pair, "net"))];
      expect_path(mine.path, at(pair, "path"), at(pair, "bw"), what);
    }
  }
  /// Tests every recorded level, and PXN off.
  void compare_gdr() {
    const json::Array& pairs = list(at(expected_, "gpu_net"));
    if (pairs.empty()) return;
    for (const auto& [level, unused] : *at(pairs.front(), "gdr").as<json::Object>()) {
      nccl::Settings settings = settings_;
      if (level != "default") settings.net_gdr_level = level;
      const nccl::View view = nccl::view(topology_, 0, nullptr, settings);
      for (const json::Value& pair : pairs) {
        const nccl::GpuNet& mine = view.gpu_nets[gpu(at(pair, "gpu"))][net(at(pair, "net"))];
        EXPECT_EQ(flags(mine.gdr_write, mine.gdr_read), flags(at(at(pair, "gdr"), level)))
            << "gpu " << integer(at(pair, "gpu")) << " net " << integer(at(pair, "net"))
            << " level " << level;
      }
    }
    nccl::Settings settings = settings_;
    settings.pxn = false;
    const nccl::View view = nccl::view(topology_, 0, nullptr, settings);
    for (const json::Value& pair : pairs) {
      const nccl::GpuNet& mine = view.gpu_nets[gpu(at(pair, "gpu"))][net(at(pair, "net"))];
      const std::string what = fmt::format("gpu {} net {} without PXN", integer(at(pair, "gpu")),
                                           integer(at(pair, "net")));
      EXPECT_EQ(flags(mine.gdr_write, mine.gdr_read), flags(at(pair, "gdr_without_pxn"))) << what;
      expect_path(mine.path, at(pair, "own_path"), at(pair, "own_bw"), what);
    }
  }
  void compare_local_nets() {
    for (const auto& [rank, nets] : *at(expected_, "local_net").as<json::Object>()) {
      const auto& mine = view_.local_nets[gpu(json::Value(std::stoi(rank)))];
      ASSERT_FALSE(mine.empty());
      for (std::size_t channel = 0; channel < list(nets).size(); ++channel)
        EXPECT_EQ(view_.nets[mine[channel % mine.size()]].dev, integer(list(nets)[channel]))
            << "rank " << rank << " channel " << channel;
    }
  }

  const Topology& topology_;
  const json::Value& expected_;
  nccl::Settings settings_;
  nccl::View view_;
};

std::string input_of(const std::string& shared, const std::string& name,
                     const json::Value& document) {
  const std::string completed = fmt::format("{}/nccl-expected/inputs/{}.xml", shared, name);
  return std::filesystem::exists(completed)
             ? completed
             : fmt::format("{}/corpus/nccl-xml/{}", shared, text(at(document, "source")));
}

TEST(NcclPaths, AnswersAsNcclDoes) {
  const auto shared = test::shared_dir();
  if (!shared) GTEST_SKIP() << test::no_shared_dir;
  int answers = 0;
  int pairs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(*shared + "/nccl-expected")) {
    if (entry.path().extension() != ".json") continue;
    const json::Value document = json::parse_file(entry.path().string());
    const Topology topology = import_nccl_xml(
        std::vector<std::string>{input_of(*shared, entry.path().stem().string(), document)});
    for (const json::Value& expected : list(at(document, "by_version"))) {
      SCOPED_TRACE(entry.path().filename().string() + " NCCL " + text(at(expected, "nccl")));
      Comparison(topology, expected).compare();
      ++answers;
      pairs += static_cast<int>(list(at(expected, "gpu_net")).size() +
                                list(at(expected, "gpu_gpu")).size());
    }
  }
  std::printf("%d answers of NCCL, %d pairs\n", answers, pairs);
  EXPECT_EQ(answers, 87);
}

nccl::View view_of(const std::string& text, const nccl::Settings& settings) {
  return nccl::view(import_nccl_xml(std::vector<NamedText>{{text, "machine.xml"}}), 0, nullptr,
                    settings);
}

/// A Grace Hopper: the GPU is connected to the CPU by C2C and by a PCIe port, the NIC by another
/// port.
constexpr const char* grace_hopper = R"(<system version="1"><cpu numaid="0" arch="arm64">
  <pci busid="0009:01:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
    <gpu dev="0" sm="90" rank="0" gdr="1"><c2c bw="44712" count="10"/></gpu></pci>
  <pci busid="0000:01:00.0" class="0x020700" link_speed="32.0 GT/s PCIe" link_width="16">
    <nic><net name="mlx5_0" dev="0" speed="400000" port="1" gdr="1"/></nic></pci></cpu></system>)";

TEST(NcclPaths, CountsC2cByVersion) {
  const auto answer = [](const std::string& version, std::optional<bool> c2c = {},
                         const std::string& level = "") {
    nccl::Settings settings;
    settings.version = version;
    settings.net_gdr_c2c = c2c;
    settings.net_gdr_level = level;
    const nccl::GpuNet pair = view_of(grace_hopper, settings).gpu_nets[0][0];
    return fmt::format("{} {}", nccl::to_string(pair.path.type), pair.gdr_write ? "GDR" : "no GDR");
  };
  EXPECT_EQ(answer("2.18.6"), "PHB no GDR");
  EXPECT_EQ(answer("2.23.4"), "PHB no GDR");
  EXPECT_EQ(answer("2.26.2"), "PHB no GDR");
  EXPECT_EQ(answer("2.26.2", true), "PHB GDR");
  EXPECT_EQ(answer("2.28.9"), "P2C GDR");
  EXPECT_EQ(answer("2.28.9", false), "P2C no GDR");
  EXPECT_EQ(answer("2.30.7"), "P2C GDR");
  EXPECT_EQ(answer("2.30.7", {}, "PXB"), "P2C no GDR") << "the user's level replaces the default";
  EXPECT_EQ(answer("2.30.7", {}, "3"), "P2C GDR");
}

TEST(NcclPaths, ReadsLevels) {
  EXPECT_EQ(nccl::parse_level("PHB"), nccl::PathType::phb);
  EXPECT_EQ(nccl::parse_level("0"), nccl::PathType::loc);
  EXPECT_EQ(nccl::parse_level("2"), nccl::PathType::pxb);
  EXPECT_EQ(nccl::parse_level("99999999999999999999999"), nccl::PathType::sys);
  EXPECT_EQ(nccl::parse_level(""), std::nullopt);
  EXPECT_EQ(nccl::parse_level("NET"), std::nullopt);
  EXPECT_EQ(nccl::parse_level("-1"), std::nullopt);
}

TEST(NcclPaths, RefusesVersionsThatAreNotModelled) {
  EXPECT_NO_THROW((void)nccl::rules_of("2.12"));
  EXPECT_NO_THROW((void)nccl::rules_of("2.28.9+cuda13.0"));
  for (const std::string version : {"", "2", "two", "2.11.4", "1.3.5"}) {
    try {
      (void)nccl::rules_of(version);
      ADD_FAILURE() << version;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(),
                "NCCL version \"" + version + "\": allowed are 2.12 and newer, as in 2.18.6");
    }
  }
}

TEST(NcclPaths, TakesTopologiesOfTheirOwn) {
  const auto document = json::parse(R"({"format": 1, "name": "own", "hosts": [{"name": "h0",
    "sockets": [{"name": "cpu0", "model": "ice-lake-sp"}, {"name": "cpu1", "model": "ice-lake-sp"}],
    "numa_nodes": [{"name": "numa0", "socket": "cpu0"}, {"name": "numa1", "socket": "cpu1"}],
    "devices": [{"name": "hb0", "kind": "host-bridge", "under": "numa0"}, {"name": "hb1", "kind": "host-bridge", "under": "numa0"},
      {"name": "sw0", "kind": "switch", "under": "hb0", "link": "gen4x16"},
      {"name": "gpu0", "kind": "gpu", "model": "a100-sxm4-40gb", "under": "sw0", "link": "gen4x16"},
      {"name": "nic0", "kind": "nic", "model": "connectx-7", "under": "sw0", "link": "gen4x16"},
      {"name": "nic1", "kind": "nic", "model": "connectx-7", "under": "hb1", "link": "gen4x16"},
      {"name": "nic2", "kind": "nic", "model": "connectx-7", "under": "numa1", "link": "gen4x16"}]}]})",
                                    "own.json");
  const ModelLibrary models(data_folder(GDR_PROJECT_DIR) + "/models");
  const nccl::View view = nccl::view(read_topology(document, "own.json", "."), 0, &models, {});
  ASSERT_EQ(view.gpus.size(), 1U);
  ASSERT_EQ(view.nets.size(), 3U);
  EXPECT_EQ(view.gpus[0].sm, 80);
  EXPECT_EQ(view.gpu_nets[0][0].path, (nccl::Path{nccl::PathType::pix, 24.0F, 3}));
  EXPECT_TRUE(view.gpu_nets[0][0].gdr_write && view.gpu_nets[0][0].gdr_read == true);
  EXPECT_EQ(view.gpu_nets[0][1].path.type, nccl::PathType::phb) << "NCCL does not see host bridges";
  EXPECT_EQ(view.gpu_nets[0][2].path.type, nccl::PathType::sys);
  EXPECT_EQ(view.gpu_nets[0][2].path.gigabytes_per_second, 10.0F);
  EXPECT_FALSE(view.gpu_nets[0][1].gdr_write);
  EXPECT_EQ(view.local_nets[0], std::vector<std::size_t>{0});
}

TEST(NcclPaths, DoesNotGuessTheComputeCapability) {
  const std::string gpu = R"(<pci class="0x030200" link_speed="" link_width="0" busid="0000:0)";
  const std::string text =
      R"(<system version="1"><cpu numaid="0" arch="arm64"><pci busid="0000:01:00.0" class="0x060400" link_speed="" link_width="0">)" +
      gpu + "3:00.0\"/>" + gpu + "4:00.0\"/>" +
      R"(<pci busid="0000:05:00.0" class="0x020700" link_speed="" link_width="0"/></pci></cpu></system>)";
  nccl::Settings settings;
  settings.version = "2.28.9";
  EXPECT_EQ(view_of(text, settings).gpu_nets[0][0].gdr_write, true);
  EXPECT_EQ(view_of(text, settings).gpu_nets[0][0].gdr_read, std::nullopt);
  settings.version = "2.18.6";
  EXPECT_EQ(view_of(text, settings).gpu_nets[0][0].gdr_read, false)
      << "no NVLink peer, whatever the GPU";
}

TEST(NcclPaths, FlattensBroadcomSwitchesByVersion) {
  const auto path = [](const std::string& version, const std::string& upper,
                       const std::string& lower, const std::string& device) {
    const auto bridge = [&](const std::string& bus, const std::string& subsystem) {
      return "<pci busid=\"" + bus + "\" class=\"0x060400\" vendor=\"0x1000\" device=\"" + device +
             "\" subsystem_vendor=\"0x1000\" subsystem_device=\"" + subsystem +
             "\" link_speed=\"16.0 GT/s PCIe\" link_width=\"16\">";
    };
    const std::string text =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"arm64\">" + bridge("0000:01:00.0", upper) +
        bridge("0000:03:00.0", lower) +
        R"(<pci busid="0000:05:00.0" class="0x030200" link_speed="" link_width="0"><gpu dev="0" sm="80" rank="0" gdr="1"/></pci></pci>
           <pci busid="0000:06:00.0" class="0x020700" link_speed="" link_width="0"><nic><net name="n" dev="0" speed="200000" port="1" gdr="1"/></nic></pci>
           </pci></cpu></system>)";
    nccl::Settings settings;
    settings.version = version;
    return nccl::to_string(view_of(text, settings).gpu_nets[0][0].path.type);
  };
  EXPECT_EQ(path("2.18.6", "0xa096", "0xa096", "0xc010"), "PIX") << "Gen4";
  EXPECT_EQ(path("2.28.9", "0xa096", "0xa096", "0xc010"), "PIX");
  EXPECT_EQ(path("2.18.6", "0x0004", "0x100b", "0xc030"), "PXB") << "Gen5, before NCCL knew it";
  EXPECT_EQ(path("2.20.5", "0x0004", "0x100b", "0xc030"), "PIX");
  EXPECT_EQ(path("2.28.9", "0x100b", "0x100b", "0xc030"), "PXB")
      << "two halves that do not belong together";
}

}  // namespace
}  // namespace gdr
