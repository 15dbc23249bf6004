#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "emu/machine/gpu_memory.hpp"
#include "emu/machine/pci_overlay.hpp"
#include "src/common/error.hpp"
#include "src/import/machine.hpp"
#include "src/report/names.hpp"
#include "src/verdict/host_verdict.hpp"
#include "tests/support/shared.hpp"
#include "tests/support/simulation.hpp"

// The verdict, the predictions and the guests' PCI registers use one Hardware, so they must agree
// on one file. Checked for single machines and for every machine of the project, whole and with
// single facts left out.

namespace gdr::sim {
namespace {

using report::name;

using namespace gdr::literals;

constexpr double tolerance = 0.02;
constexpr Bytes bulk = 64_MiB;

struct Machine {
  explicit Machine(Topology t)
      : topology(std::move(t)), graph(topology), hardware(graph, models()) {}
  Topology topology;
  Graph graph;
  Hardware hardware;
};

/// The links that the guest of the first host shows, by device.
std::map<std::size_t, PcieLink> guest_links(const Machine& machine) {
  const Host& host = machine.topology.hosts.front();
  const emu::PcieTree tree = emu::pcie_tree(host, 0, emu::gpu_memory(machine.hardware, 0),
                                            [](const Device& gpu) { return "/run/" + gpu.name; });
  std::istringstream text(emu::pci_overlay(machine.hardware, 0, tree));
  std::map<std::size_t, PcieLink> links;
  std::string tag, where, space, offset, mask, rest;
  std::uint32_t value = 0;
  while (text >> tag >> where >> space >> offset >> mask) {
    const bool link = where.front() == 'd' && space == "p" && offset == "10";
    if (link) text >> std::hex >> value >> std::dec;
    std::getline(text, rest);
    if (!link) continue;
    const auto place = std::stoul(where.substr(1), nullptr, 16);
    const auto at = std::find(tree.places.begin(), tree.places.end(), place);
    links[static_cast<std::size_t>(at - tree.places.begin())] = {
        static_cast<int>(value >> 16U & 0xfU), static_cast<int>(value >> 20U & 0x3fU)};
  }
  return links;
}

/// The guest's links are Hardware's, except that it also shows links that software shows. It does
/// not show assumed ones.
void expect_guest_has_the_links(const Machine& machine) {
  const Host& host = machine.topology.hosts.front();
  const auto shown = guest_links(machine);
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const auto link = machine.hardware.link(DeviceId{0, i});
    const bool is_virtual = machine.hardware.shows_virtual_link({0, i});
    const auto at = shown.find(i);
    if (at == shown.end()) continue;
    EXPECT_EQ(at->second, is_virtual ? host.devices[i].link : link.value);
    EXPECT_TRUE(is_virtual || link.basis != Basis::assumed);
  }
}

/// The first host twice, joined by a network whose ports are so fast that PCIe limits.
Topology doubled(const Topology& topology) {
  Topology two = topology;
  two.hosts = {topology.hosts.front(), topology.hosts.front()};
  two.hosts[1].name = two.hosts[0].name == "h1" ? "h2" : "h1";
  bool ethernet = false;
  for (Host& host : two.hosts)
    for (Device& device : host.devices) {
      if (device.kind != DeviceKind::nic) continue;
      device.port_rate = parse_bandwidth("4000Gb/s");
      device.link_layer = device.link_layer.value_or(LinkLayer::infiniband);
      ethernet = *device.link_layer == LinkLayer::ethernet;
    }
  for (Host& host : two.hosts)
    for (Device& device : host.devices)
      if (device.kind == DeviceKind::nic)
        device.link_layer = ethernet ? LinkLayer::ethernet : LinkLayer::infiniband;
  two.fabric = Fabric{ethernet ? "roce-v2" : "infiniband", {}, {}};
  return two;
}

/// The link of a hop, in its direction.
ResourceId link_of(const Graph& graph, const Hop& hop) {
  const Edge& edge = graph.edge(hop.edge);
  return {ResourceKind::link, graph.device({edge.host, edge.index}),
          hop.up ? Direction::up : Direction::down};
}

/// Compares a prediction with the bounds of its accesses.
void compare(const Machine& machine, const Transfer& transfer,
             const std::vector<AccessBound>& bounds) {
  const Prediction predicted = predict(simulator(), machine.hardware, transfer, {128, 64});
  Bandwidth least{1e15};
  for (const AccessBound& bound : bounds) least = std::min(least, bound.rate);
  SCOPED_TRACE(fmt::format(
      "{}: {} {} to {}: bound {:.4g} GB/s, predicted {:.4g} ({})", machine.topology.name,
      to_string(transfer.path), label(machine.topology, transfer.from),
      label(machine.topology, transfer.to), least.gigabytes_per_second(),
      predicted.bandwidth.gigabytes_per_second(), name(machine.hardware, predicted.bottleneck)));
  EXPECT_GE(least.bytes_per_second, predicted.bandwidth.bytes_per_second * (1 - tolerance));
  if (!is(predicted.bottleneck, ResourceKind::link)) return;
  std::set<ResourceId> links;
  for (const AccessBound& bound : bounds)
    if (bound.rate <= least * (1 + tolerance))
      for (const Hop& hop : bound.links) links.insert(link_of(machine.graph, hop));
  EXPECT_TRUE(links.contains(std::get<ResourceId>(predicted.bottleneck)));
}

/// `initiator` reads or writes `target` on one host: the drive or the first GPU.
void compare_local(const Machine& machine, DeviceId initiator, DeviceId target) {
  const bool drive = machine.hardware.device(initiator).kind == DeviceKind::nvme;
  const PairContext pair = make_pair_context(
      machine.hardware, drive ? PairKind::nvme_gpu : PairKind::gpu_gpu, initiator, target);
  if (pair.over_nvlink()) return;
  const PairBounds bounds = pair_bounds(pair);
  Transfer transfer;
  transfer.path = drive ? PathKind::gds : PathKind::p2p;
  transfer.size = bulk;
  transfer.from = initiator;
  transfer.to = target;
  compare(machine, transfer, {*bounds.write});
  std::swap(transfer.from, transfer.to);
  if (!drive) transfer.operation = Operation::read;
  compare(machine, transfer, {*bounds.read});
}

/// The NIC of one host reads its GPU, and that of the other writes its own. `two`: the machine
/// doubled.
void compare_network(const Machine& two, DeviceId gpu, DeviceId nic) {
  if (two.hardware.nic(nic).rdma.value == "none") return;
  const DeviceId far_gpu{1, gpu.device};
  const DeviceId far_nic{1, nic.device};
  Transfer transfer;
  transfer.path = PathKind::gdr;
  transfer.size = bulk;
  transfer.from = gpu;
  transfer.to = far_gpu;
  transfer.via = {nic, far_nic};
  compare(
      two, transfer,
      {*pair_bounds(make_pair_context(two.hardware, PairKind::gpu_nic, gpu, nic)).read,
       *pair_bounds(make_pair_context(two.hardware, PairKind::gpu_nic, far_gpu, far_nic)).write});
}

/// Where the best NIC is not the nearest, its answer is better.
void expect_one_best_nic(const Machine& machine) {
  const Verdict verdict = judge(machine.graph, models());
  const auto good = [](PairAnswer answer) {
    return answer == PairAnswer::blocked ? 2 : answer == PairAnswer::slow ? 1 : 0;
  };
  for (const BestPair& best : verdict.best) {
    const Pair& chosen = verdict.pairs[best.pair];
    const auto near =
        machine.hardware.nearest_nic(find_device(machine.topology, best.gpu), NicUse::gpudirect);
    if (!near || label(machine.topology, *near) == chosen.to) continue;
    const auto other =
        std::find_if(verdict.pairs.begin(), verdict.pairs.end(), [&](const Pair& pair) {
          return pair.from == best.gpu && pair.to == label(machine.topology, *near);
        });
    ASSERT_NE(other, verdict.pairs.end());
    EXPECT_LT(good(chosen.answer), good(other->answer))
        << best.gpu << ": " << chosen.to << ", and transfers take " << other->to;
  }
}

/// One host with a fact left out, and its name.
struct Variant {
  std::string without;
  Topology topology;
};

std::vector<Variant> variants_of(const Topology& topology) {
  std::vector<Variant> variants{{"nothing", topology}};
  const auto add = [&](const std::string& what, auto change) {
    Variant variant{what, topology};
    change(variant.topology.hosts.front());
    if (variant.topology != topology) variants.push_back(std::move(variant));
  };
  const Host& host = topology.hosts.front();
  for (std::size_t i = 0; i < host.devices.size(); ++i) {
    const std::string& name = host.devices[i].name;
    add("link of " + name, [&](Host& h) { h.devices[i].link.reset(); });
    add("acs of " + name, [&](Host& h) { h.devices[i].acs.reset(); });
    add("ats of " + name, [&](Host& h) { h.devices[i].ats.reset(); });
    add("model of " + name, [&](Host& h) { h.devices[i].model.clear(); });
  }
  for (std::size_t i = 0; i < host.sockets.size(); ++i)
    add("model of " + host.sockets[i].name, [&](Host& h) { h.sockets[i].model.clear(); });
  add("iommu", [&](Host& h) { h.software.iommu.reset(); });
  return variants;
}

/// One random pair of each kind, to save time.
template <typename Random>
void compare_some_pairs(const Topology& topology, Random& random) {
  const auto any = [&](const std::vector<DeviceId>& ids) { return ids[random() % ids.size()]; };
  const Machine machine(topology);
  const auto gpus = devices_of_kind(topology, DeviceKind::gpu);
  const auto nics = devices_of_kind(topology, DeviceKind::nic);
  const auto drives = devices_of_kind(topology, DeviceKind::nvme);
  if (gpus.empty()) return;
  if (const DeviceId one = any(gpus), other = any(gpus); one != other)
    compare_local(machine, one, other);
  if (!drives.empty()) compare_local(machine, any(drives), any(gpus));
  if (!nics.empty()) compare_network(Machine(doubled(topology)), any(gpus), any(nics));
}

/// Every machine that the project ships, and every capture in tests/data and the shared corpus that
/// can be imported.
std::vector<Topology> every_machine() {
  namespace fs = std::filesystem;
  std::vector<Topology> machines;
  const auto files_below = [](const std::string& folder) {
    std::vector<std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.is_regular_file()) files.push_back(entry.path().string());
    std::sort(files.begin(), files.end());
    return files;
  };
  for (const char* folder : {"topologies", "tests/golden/check"})
    for (const std::string& file : files_below(project_file(folder)))
      if (file.find("expected") == std::string::npos) machines.push_back(load_topology(file));
  std::vector<std::string> listings = files_below(project_file("tests/data/captures"));
  if (const auto shared = test::shared_dir())
    for (const std::string& file : files_below(*shared + "/corpus")) listings.push_back(file);
  for (const std::string& file : listings) {
    try {
      machines.push_back(import_machine(std::vector<std::string>{file}, &models()));
    } catch (const InputError&) {
      continue;  // ImportCorpus checks which may be refused
    }
  }
  for (Topology& machine : machines) machine.hosts.resize(1);
  return machines;
}

TEST(OneTruth, BoundsPredictionsAndGuestsAgreeWithAnyFactLeftOut) {
  constexpr std::uint32_t seed = 20;
  constexpr std::size_t most =
      4;  // variants per machine, the unchanged one and others drawn with the seed, to save time
  std::mt19937 random(seed);
  std::size_t count = 0;
  for (const Topology& topology : every_machine()) {
    std::vector<Variant> variants = variants_of(topology);
    std::shuffle(variants.begin() + 1, variants.end(), random);
    for (std::size_t i = 0; i < std::min(most, variants.size()); ++i) {
      SCOPED_TRACE(fmt::format("seed {}, {} without {}", seed, topology.name, variants[i].without));
      const Machine machine(variants[i].topology);
      if (machine.topology.hosts.front().devices.size() <= 64) expect_guest_has_the_links(machine);
      expect_one_best_nic(machine);
      compare_some_pairs(variants[i].topology, random);
      ++count;
    }
  }
  fmt::print("{} machines\n", count);
  EXPECT_GT(count, 100U);
}

/// One or two hosts (`{0}`: the name) as a topology.
json::Value document(const std::string& host, int hosts) {
  const auto named = [&](const std::string& name) {
    return fmt::format(R"({{"name": "{}", {}}})", name, host);
  };
  return json::parse(
      fmt::format(
          R"({{"format": 1, "name": "t", "fabric": {{"model": "infiniband"}}, "hosts": [{}]}})",
          hosts == 1 ? named("h0") : named("h0") + ", " + named("h1")),
      "t.json");
}

/// As imported from lspci -tv and lscpu: only the drive's link is stated.
const char* const gen4_server = R"("sockets": [{"name": "cpu0", "model": "epyc-milan"}],
  "numa_nodes": [{"name": "numa0", "socket": "cpu0"}],
  "devices": [
    {"name": "hb0", "kind": "host-bridge", "under": "numa0"},
    {"name": "hb1", "kind": "host-bridge", "under": "numa0"},
    {"name": "gpu0", "kind": "gpu", "model": "h100-pcie", "under": "hb0"},
    {"name": "nic0", "kind": "nic", "model": "connectx-7", "under": "hb1"},
    {"name": "nvme0", "kind": "nvme", "under": "hb1", "link": "gen5x4"}])";

/// Two GPUs and a NIC below one switch with a slow uplink.
std::string below_a_switch(const std::string& software, const std::string& gpu_acs) {
  return fmt::format(R"("software": {{{0}}}, "sockets": [{{"name": "cpu0", "model": "epyc-milan"}}],
  "numa_nodes": [{{"name": "numa0", "socket": "cpu0"}}],
  "devices": [
    {{"name": "hb0", "kind": "host-bridge", "under": "numa0"}},
    {{"name": "sw0", "kind": "switch", "model": "pex88096", "under": "hb0", "link": "gen3x8", "acs": []}},
    {{"name": "gpu0", "kind": "gpu", "model": "a100-pcie-40gb", "under": "sw0", "link": "gen4x16", "acs": [{1}]}},
    {{"name": "gpu1", "kind": "gpu", "model": "a100-pcie-40gb", "under": "sw0", "link": "gen4x16", "acs": [{1}]}},
    {{"name": "nic0", "kind": "nic", "model": "connectx-6-hdr", "under": "sw0", "link": "gen4x16", "acs": []}}])",
                     software, gpu_acs);
}

const Pair& pair_of(const Verdict& verdict, const std::string& from, const std::string& to) {
  return *std::find_if(verdict.pairs.begin(), verdict.pairs.end(),
                       [&](const Pair& p) { return p.from == from && p.to == to; });
}

TEST(OneTruth, ALinkThatNobodyStatesIsNoFasterThanTheCpusPorts) {
  const Lab lab(document(gen4_server, 2), {});
  const auto link = lab.hardware.link(find_device(lab.topology, "h0/nic0"));
  EXPECT_EQ(link.value, (PcieLink{4, 16}));
  EXPECT_EQ(link.basis, Basis::model);
  const Verdict verdict = judge(lab.graph, models());
  const Finding* slot = nullptr;
  for (const Finding& finding : verdict.findings)
    if (finding.rule == "nic-wider-than-slot") slot = &finding;
  ASSERT_NE(slot, nullptr);
  EXPECT_NE(slot->message.find("the slot's gen4x16 link only 27.2 GB/s"), std::string::npos)
      << slot->message;
  Transfer rdma = lab.transfer("h0/gpu0", "h1/gpu0", PathKind::rdma, bulk);
  const Prediction predicted = lab.run(rdma);
  // The GPU takes TLPs of up to 256 B; with the 512 B of NIC and CPU the slot carries a little
  // more.
  EXPECT_LT(predicted.bandwidth, lab.hardware.payload_rate({4, 16}, 512_B));
  EXPECT_TRUE(is(predicted.bottleneck, ResourceKind::link));
  const auto guest = guest_links(Machine(lab.topology));
  EXPECT_EQ(guest.at(2), (PcieLink{4, 16}));
  EXPECT_EQ(guest.at(3), (PcieLink{4, 16}));
}

TEST(OneTruth, ATranslatingIommuSendsPeersUpForCheckAndForPredict) {
  const Lab lab(
      document(
          below_a_switch(
              R"("iommu": "translate", "kernel": "6.1", "cuda": "12.2", "open_kernel_modules": true)",
              ""),
          2),
      {});
  const Verdict verdict = judge(lab.graph, models());
  const Pair& pair = pair_of(verdict, "h0/gpu0", "h0/nic0");
  EXPECT_EQ(pair.answer, PairAnswer::slow);
  EXPECT_EQ(pair.redirected, true);
  expect_close("writes, GB/s", 6.626, pair.bandwidth.write->gigabytes_per_second(), 1e-3);
  const Prediction gdr = lab.run(lab.transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, bulk));
  expect_close("predicted, GB/s", 6.626, gdr.bandwidth.gigabytes_per_second(), tolerance);
  EXPECT_TRUE(name(lab.hardware, gdr.bottleneck).find("/sw0 link ") != std::string::npos)
      << name(lab.hardware, gdr.bottleneck);
}

TEST(OneTruth, AnUnnamedDriveIsOfItsLinksGeneration) {
  const Lab lab(document(gen4_server, 1), {});
  const Verdict verdict = judge(lab.graph, models());
  EXPECT_EQ(&lab.hardware.nvme(find_device(lab.topology, "h0/nvme0")), &models().nvme("gen5"));
  const Pair& pair = pair_of(verdict, "h0/nvme0", "h0/gpu0");
  const Prediction gds = lab.run(lab.transfer("h0/nvme0", "h0/gpu0", PathKind::gds, bulk));
  EXPECT_GE(pair.bandwidth.write->bytes_per_second,
            gds.bandwidth.bytes_per_second * (1 - tolerance));
  expect_close("GB/s",
               std::min(models().nvme("gen5").read_bandwidth.value, *pair.bandwidth.write)
                   .gigabytes_per_second(),
               gds.bandwidth.gigabytes_per_second(), tolerance);
}

TEST(OneTruth, ARouteThatTheFileLeavesOpenIsSaidToBe) {
  const std::string software = R"("iommu": "passthrough", "nvidia_peermem": true)";
  const Lab lab(document(below_a_switch(software, R"("RR", "DT")"), 1), {});
  const Verdict verdict = judge(lab.graph, models());
  const Pair& pair = pair_of(verdict, "h0/gpu0", "h0/gpu1");
  EXPECT_EQ(pair.redirected, std::nullopt);
  EXPECT_EQ(pair.answer, PairAnswer::unknown);
  const Transfer copy = lab.transfer("h0/gpu0", "h0/gpu1", PathKind::p2p, bulk);
  const Prediction up = lab.run(copy);
  expect_close("over the root port, GB/s", 6.626, up.bandwidth.gigabytes_per_second(), tolerance);
  const OpenQuestion ats{OpenQuestion::Kind::ats, lab.graph.device(copy.from)};
  EXPECT_EQ(up.stages.front().open, std::vector<OpenQuestion>{ats});

  // With ATS stated nothing is open; without the ACS bits, they are.
  const Lab on(document(below_a_switch(software, R"("RR", "DT")"), 1), {"h0/gpu0.ats=true"});
  EXPECT_TRUE(on.run(copy).stages.front().open.empty());
  EXPECT_GT(on.run(copy).bandwidth.gigabytes_per_second(), 20.0);
  Topology unsaid = on.topology;
  unsaid.hosts[0].devices[2].acs.reset();
  const Machine machine(unsaid);
  const OpenQuestion acs{OpenQuestion::Kind::acs, machine.graph.device(copy.from)};
  EXPECT_EQ(predict(simulator(), machine.hardware, copy, {}).stages.front().open,
            std::vector<OpenQuestion>{acs});
}

}  // namespace
}  // namespace gdr::sim
