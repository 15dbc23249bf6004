#include "src/topology/settings.hpp"

#include <gtest/gtest.h>

#include "src/common/error.hpp"
#include "src/common/json.hpp"

namespace {

using gdr::Topology;

const std::string small = std::string(GDR_PROJECT_DIR) + "/tests/data/small.json";

Topology with(const std::string& setting) {
  return gdr::load_topology(small, {gdr::parse_setting(setting)});
}

std::string error_of(const std::string& setting) {
  try {
    (void)with(setting);
    return "accepted";
  } catch (const gdr::InputError& error) {
    return error.what();
  }
}

const gdr::Device& device(const Topology& topology, const char* name) {
  return get(topology, gdr::find_device(topology, name));
}

TEST(Settings, OneDevice) {
  EXPECT_EQ(device(with("h0/nic0.max_read_request=4096B"), "nic0").max_read_request,
            gdr::Bytes{4096});
  EXPECT_EQ(device(with("h0/gpu0.link=gen4x8"), "gpu0").link, (gdr::PcieLink{4, 8}));
  EXPECT_EQ(device(with("h0/nic0.ports=2"), "nic0").ports, 2);
  EXPECT_EQ(device(with("h0/nic0.gid_type=1"), "nic0").gid_type, 1);
  EXPECT_EQ(device(with("h0/nic0.lossless=yes"), "nic0").lossless, true);
  EXPECT_EQ(device(with("h0/nic0.model=7"), "nic0").model, "7");
  EXPECT_EQ(device(with("h0/gpu0.acs=SV+RR"), "gpu0").acs, (gdr::Acs{0b101}));
  EXPECT_EQ(device(with("h0/gpu0.acs=SV,RR"), "gpu0").acs, (gdr::Acs{0b101}));
}

TEST(Settings, AHostAndTheFabric) {
  EXPECT_EQ(with("h0.iommu=translate").hosts[0].software.iommu, gdr::IommuMode::translate);
  EXPECT_EQ(with("h0.kernel=6").hosts[0].software.kernel, "6");
  EXPECT_EQ(with("h0.virtual_machine=true").hosts[0].virtual_machine, true);
  EXPECT_EQ(with("staging.chunk=1MiB").staging->chunk, gdr::Bytes{1048576});
  EXPECT_EQ(with("staging.depth=4").staging->depth, 4);
  EXPECT_EQ(with("fabric.model=ethernet").fabric->model, "ethernet");
}

TEST(Settings, Everywhere) {
  const Topology on = with("acs=on");
  for (const char* name : {"sw0", "gpu0", "nic0"})
    EXPECT_EQ(to_string(*device(on, name).acs), "SV+RR+CR+UF") << name;
  EXPECT_FALSE(device(on, "hb0").acs);
  EXPECT_EQ(to_string(*device(with("acs=off"), "gpu0").acs), "none");
  EXPECT_EQ(with("nvidia_peermem=no").hosts[0].software.nvidia_peermem, false);
  EXPECT_EQ(with("virtual_machine=false").hosts[0].virtual_machine, false);
}

TEST(Settings, ErrorsAreTheReadersOrNameTheKey) {
  EXPECT_EQ(error_of("h0/nic0.max_read_request=4096"),
            "--set h0/nic0.max_read_request=4096: " + small +
                ": at /hosts/0/devices/3/max_read_request: \"4096\" is not an amount of data: the "
                "unit is missing; write a number "
                "and one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB (or bits: b, kb, Mb, Gb)");
  EXPECT_EQ(error_of("acs=XX"),
            "--set acs=XX: " + small +
                ": at /hosts/0/devices/1/acs/0: found \"XX\", allowed: SV, TB, RR, CR, UF, EC, DT");
  EXPECT_EQ(error_of("nonsense"),
            "--set nonsense: write KEY=VALUE, as in h0/nic0.max_read_request=4096B");
  EXPECT_EQ(error_of("=1"), "--set =1: write KEY=VALUE, as in h0/nic0.max_read_request=4096B");
  EXPECT_TRUE(
      error_of("speed=1").starts_with("--set speed=1: \"speed\" is not a field of all hosts or "
                                      "devices; write HOST/DEVICE.FIELD=VALUE"));
  EXPECT_TRUE(
      error_of("h9.iommu=off").starts_with("--set h9.iommu=off: there is no host \"h9\"; write"));
  EXPECT_TRUE(error_of("h0/gpu9.link=gen4x8")
                  .starts_with("--set h0/gpu9.link=gen4x8: host h0 has no device \"gpu9\"; write"));
  EXPECT_TRUE(error_of("fabric.speed=1")
                  .starts_with("--set fabric.speed=1: fabric has no field \"speed\"; write"));
}

TEST(Settings, TheSettingToBlameIsNamedAndTheFileWhereItIsTheFile) {
  const auto error = [](const std::string& text,
                        const std::vector<gdr::Setting>& settings) -> std::string {
    try {
      (void)gdr::read_topology(gdr::json::parse(text, "own.json"), "own.json", "", settings);
      return "accepted";
    } catch (const gdr::InputError& e) {
      return e.what();
    }
  };
  const auto host = [](const std::string& nic_link) {
    return R"({"format": 1, "name": "t", "hosts": [{"name": "h0", "sockets": [{"name": "cpu0"}],
      "numa_nodes": [{"name": "numa0", "socket": "cpu0"}], "devices": [
      {"name": "gpu0", "kind": "gpu", "under": "numa0", "link": "gen4x8", "link_capability": "gen4x8"},
      {"name": "nic0", "kind": "nic", "under": "numa0", "link": ")" +
           nic_link + R"("}]}]})";
  };
  const gdr::Setting good{"h0.iommu", "off"};
  const gdr::Setting bad{"h0/nic0.link", "x8"};
  EXPECT_TRUE(
      error(host("gen4x8"), {good, bad, good})
          .starts_with("--set h0/nic0.link=x8: own.json: at /hosts/0/devices/1/link: \"x8\""));
  EXPECT_TRUE(
      error(host("x4"), {good}).starts_with("own.json: at /hosts/0/devices/1/link: \"x4\""));
  EXPECT_EQ(error(host("x4"), {{"h0/nic0.link", "gen4x4"}}), "accepted")
      << "a setting may correct the file";
  const gdr::Setting wide{"h0/gpu0.link", "gen4x16"};
  EXPECT_TRUE(error(host("gen4x8"), {wide, good})
                  .starts_with("--set h0/gpu0.link=gen4x16: own.json: at /hosts/0/devices/0: "));
  EXPECT_EQ(error(host("gen4x8"), {wide, {"h0/gpu0.link_capability", "gen4x16"}}), "accepted")
      << "only the final document counts";
}

/// Settings are applied before the document is checked: whatever its shape, the reader must report
/// an error.
TEST(Settings, DocumentsOfTheWrongShape) {
  const char* const documents[] = {
      "[]",
      "3",
      "{}",
      R"({"hosts": 1})",
      R"({"hosts": [null, 3, []]})",
      R"({"hosts": [{"devices": 3}], "fabric": 3})",
      R"({"hosts": [{"name": "h0", "software": 3, "devices": [null, 3]}]})"};
  const char* const settings[] = {
      "acs=on", "iommu=off", "virtual_machine=true", "fabric.mtu=1024B", "h0.iommu=off", ".x=1",
      "/.x=1",  "h0/.x=1",   "h0/gpu0.link=x"};
  for (const char* text : documents)
    for (const char* setting : settings)
      EXPECT_THROW((void)gdr::read_topology(gdr::json::parse(text, "f"), "f", "",
                                            {gdr::parse_setting(setting)}),
                   gdr::InputError)
          << text << " " << setting;
}

}  // namespace
